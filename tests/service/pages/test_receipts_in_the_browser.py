"""The module that verifies receipts in a browser says what ``discreet verify`` says, word for word.

Good receipts, and hundreds that somebody meddled with: bytes changed at random, members moved,
dropped and doubled, numbers of another kind, other keys, other answers.
"""

import base64
import copy
import json
import random

import pytest
from receipt_cases import ANSWER, Case, Log

from discreet.ledger.log import tree
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.verifier import NotProven, check_consistency, check_receipt

pytestmark = pytest.mark.needs("chromium")

CASE = Case()
CHECK = """async ([address, cases]) => {
  const { checkReceipt } = await import(address);
  const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const said = [];
  for (const { document, vkey, answer, witnesses } of cases) {
    const found = await checkReceipt(bytes(document), vkey, {
      answer: answer === null ? null : bytes(answer), witnesses });
    said.push([found.isProven, found.reason, found.steps.at(-1).name]);
  }
  return said;
}"""
STEPS = ["form", "claim", "keys", "signature", "witnesses", "entries", "payment", "answer"]


def asked(document, *, vkey=None, answer=ANSWER, witnesses=None):
    return {
        "document": document,
        "vkey": CASE.log.first.vkey if vkey is None else vkey,
        "answer": answer,
        "witnesses": [CASE.witness.vkey] if witnesses is None else witnesses,
    }


def verdict(case):
    try:
        check_receipt(
            case["document"], case["vkey"], answer=case["answer"], witnesses=case["witnesses"]
        )
    except NotProven as refusal:
        return False, str(refusal)
    return True, None


def in_browser(page, site, cases):
    """Return what the module says of each case."""
    told = [
        {
            **case,
            "document": base64.b64encode(case["document"]).decode(),
            "answer": case["answer"] and base64.b64encode(case["answer"]).decode(),
        }
        for case in cases
    ]
    return page.evaluate(CHECK, [module(page, "receipt.js"), told])


def module(page, name):
    """Return the address of a module, which the style's has the version of."""
    style = page.locator('link[href$="/pages.css"]').get_attribute("href")
    return style.replace("pages.css", f"verifier/{name}")


def agree(page, site, cases):
    said = in_browser(page, site, cases)
    for case, (is_proven, reason, _) in zip(cases, said, strict=True):
        assert (is_proven, reason) == verdict(case), case["document"]
    return said


def test_good_receipts_are_proven_step_by_step(page, site):
    text = json.dumps(CASE.receipt).encode()
    keys = [CASE.log.first, CASE.middle, CASE.log.key]
    cases = [asked(text, vkey=key.vkey) for key in keys]
    cases += [asked(text, answer=None), asked(text, witnesses=[])]
    cases += [asked(json.dumps(CASE.receipt, indent=1).encode())]
    assert [one[0] for one in agree(page, site, cases)] == [True] * len(cases)


def test_a_changed_byte_is_found_wherever_it_is(page, site):
    """Where the byte is no part of what the document says, nothing was changed, and both say so."""
    dice, cases = random.Random(7), []
    text = json.dumps(CASE.receipt, indent=1, ensure_ascii=False).encode()
    for at in dice.sample(range(len(text)), 500):
        changed = bytearray(text)
        changed[at] = dice.choice([changed[at] ^ (1 << dice.randrange(8)), dice.randrange(256)])
        cases.append(asked(bytes(changed)))
    said = agree(page, site, cases)
    for case, (is_proven, _, _) in zip(cases, said, strict=True):
        if is_proven:
            assert json.loads(case["document"]) == CASE.receipt
    failed = {step for is_proven, _, step in said if not is_proven}
    assert failed >= {"form", "claim", "keys", "signature", "entries"}


def test_what_was_moved_dropped_doubled_or_retyped_is_refused_for_the_same_reason(page, site):
    cases = [asked(text) for text in meddled()]
    stranger, other = SigningKey.generate("example.com/ledger"), SigningKey.generate("other/log")
    text = json.dumps(CASE.receipt).encode()
    for vkey in (stranger.vkey, other.vkey, CASE.witness.vkey, "", "nonsense", "a+b+c"):
        cases.append(asked(text, vkey=vkey))
    for witnesses in ([CASE.log.first.vkey], [CASE.witness.vkey] * 2, ["x"]):
        cases.append(asked(text, witnesses=witnesses))
    cases += [asked(text, answer=b""), asked(text, answer=ANSWER + b"\n")]
    said = agree(page, site, cases)
    assert len(cases) > 150
    assert {step for is_proven, _, step in said if not is_proven} == set(STEPS)


def meddled():
    """Return documents that somebody has changed on purpose."""
    plain = json.dumps(CASE.receipt)
    yield from (plain[:n].encode() for n in (0, 1, 10, len(plain) // 2, len(plain) - 1))
    yield from (before + plain.encode() for before in (b"\xef\xbb\xbf", b" \n", b"\x0b", b"1"))
    yield plain.encode() + b"\xff"
    yield b"[" * 200 + b"]" * 200
    for text in ("NaN", "-Infinity", "1e999", "01", "1" * 5000, "{}", '"\\ud800"', "nul", "'"):
        yield text.encode()
        yield plain.replace('"index": 2', f'"index": {text}').encode()
    for old, new in [
        ('"index": 2', '"index": 2.0'), ('"index": 2', '"index": 2e0'),
        ('"index": 2', '"index": true'), ('"index": 2', '"index": 2, "index": 2'),
        ('"index": 2', '"index": 99999999999999999999'), ('"index": 2', '"index": -2'),
        ('"index": 2', '"index": null'), ('"format"', '"Format"'),
        ("receipt/1", "receipt/2"), ("\\u2014", "\u2013"), ("\\n\\n", "\\n"),
    ]:  # fmt: skip
        yield plain.replace(old, new).encode()
    for name in CASE.receipt:
        yield json.dumps({k: v for k, v in CASE.receipt.items() if k != name}).encode()
        yield json.dumps(CASE.receipt | {name: None}).encode()
        yield json.dumps(CASE.receipt | {name: []}).encode()
        yield json.dumps(CASE.receipt | {f"{name} ": 1}).encode()
        yield json.dumps(CASE.receipt | {name: "\ud800"}).encode()
    for part in ("entries", "rotations"):
        shown = CASE.receipt[part]
        for kept in (shown[:1], shown[1:], shown[::-1], shown * 2, [1], [shown]):
            yield json.dumps(CASE.receipt | {part: kept}).encode()
        for entry, name in [(e, n) for e in range(len(shown)) for n in shown[e]]:
            for value in (None, "", 0, [], ["AA=="], "AAAA", 7, {"a": 1}, "{}", '{"index":2}'):
                changed = copy.deepcopy(CASE.receipt)
                changed[part][entry][name] = value
                yield json.dumps(changed).encode()
    yield from notes()


def notes():
    """Return receipts with other checkpoints."""
    note = CASE.receipt["checkpoint"]
    text, signatures = note.split("\n\n")
    origin, size, root = text.split("\n")
    log, witness = signatures.splitlines()
    for changed in [
        f"{origin}\n0{size}\n{root}\n\n{log}\n", f"{origin}\n{size}\n{root}\nmore\n\n{log}\n",
        f"{origin}\n{2**63}\n{root}\n\n{log}\n", f"{origin}\n{int(size) + 1}\n{root}\n\n{log}\n",
        f"other\n{size}\n{root}\n\n{log}\n", f"{origin}\n{size}\n{root}=\n\n{log}\n",
        f"{text}\n\n{witness}\n", f"{text}\n\n{log}\n", f"{text}\n\n{log}\n{log}\n{witness}\n",
        f"{text}\n\n{log[:-8]}AAAAAAA=\n", f"{text}\n\n{witness[:-8]}\n", f"{text}\n\n\n",
        f"{text}\n\n{log}\n" + f"{log}\n" * 100, f"{text}\n\n{log} \n", f"{text}\r\n\r\n{log}\n",
        f"{text}\n\n{log}\n{witness[:-6]}AAAA==\n", f"{text}\n\n{log.replace(' ', '  ')}\n",
        f"\u200b{text}\n\n{log}\n", f"{text}\n\n- {log[2:]}\n",
    ]:  # fmt: skip
        yield json.dumps(CASE.receipt | {"checkpoint": changed}).encode()


def test_consistency_is_what_rfc_6962_says(page, site):
    """Every pair of sizes up to 17, right proofs and wrong ones."""
    log = Log()
    roots = [tree.root(b""), tree.root(log.frontier)]
    for n in range(16):
        log.append("charge", account="a", who=f"b{n}", loss={"epsilon": n})
        roots.append(tree.root(log.frontier))
    dice, cases = random.Random(3), []
    for new in range(18):
        for old in range(new + 1):
            proof = tree.consistency(old, new, log.node)
            cases.append((old, roots[old], new, roots[new], proof))
            cases.append((old, roots[dice.randrange(18)], new, roots[new], proof))
            cases.append((old, roots[old], new, roots[new], [*proof, bytes(32)]))
            cases.append((old, roots[old], new, roots[new], proof[1:]))
            cases.append((old, roots[old], new, roots[new], [bytes(32) for _ in proof]))

    def is_shown(case):
        try:
            check_consistency(*case)
        except NotProven:
            return False
        return True

    told = [[str(o), list(a), str(n), list(b), [list(h) for h in p]] for o, a, n, b, p in cases]
    said = page.evaluate(
        """async ([address, cases]) => {
          const { checkConsistency } = await import(address);
          const bytes = (list) => Uint8Array.from(list), said = [];
          for (const [old, before, now, after, proof] of cases) {
            try {
              await checkConsistency(
                BigInt(old), bytes(before), BigInt(now), bytes(after), proof.map(bytes));
              said.push(true);
            } catch { said.push(false); }
          }
          return said;
        }""",
        [module(page, "tree.js"), told],
    )
    assert said == [is_shown(case) for case in cases]
    assert 100 < sum(said) < len(said) - 100
