"""A receipt proves what it says, and no other text does."""

import ast
import base64
import copy
import hashlib
import itertools
import json
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from receipt_cases import ANSWER, ORIGIN, TIME, Case, Log

from discreet.ledger import verifier
from discreet.ledger.log import tree as _tree
from discreet.ledger.log.keys import SigningKey, WitnessKey
from discreet.ledger.log.notes import checkpoint_text, cosign, sign_checkpoint
from discreet.ledger.verifier import NotProven, check_receipt, leaf_hash, rotation_text

CASE = Case()


def refused(*arguments, match=None, **options):
    with pytest.raises(NotProven, match=match):
        CASE.check(*arguments, **options)


def test_a_receipt_proves_its_entries_and_says_so():
    proven = CASE.check()
    assert proven.origin == ORIGIN
    assert proven.size == 10
    assert proven.root == _tree.root(CASE.log.frontier)
    assert proven.vkey == CASE.log.key.vkey
    assert [entry["kind"] for entry in proven.entries] == ["charge", "release"]
    assert proven.answer == CASE.release
    assert proven.witnesses == (("witness.example/w1", 1_679_315_147),)
    for word in ["salaries", "ana", "report", '"epsilon":1', TIME, "2023-03-20T12:25:47Z"]:
        assert word in str(proven)
    assert hashlib.sha256(ANSWER).hexdigest() in str(proven)


def test_any_key_along_the_way_leads_to_the_last():
    for key in (CASE.log.first, CASE.middle, CASE.log.key):
        assert CASE.check(vkey=key.vkey).vkey == CASE.log.key.vkey
    refused(vkey=SigningKey.generate(ORIGIN).vkey, match="lead")
    refused(vkey=SigningKey.generate("example.com/other").vkey)
    refused(vkey=CASE.witness.vkey)
    refused(vkey="nonsense")
    refused(CASE.receipt | {"rotations": []}, match="not signed")
    refused(CASE.receipt | {"rotations": CASE.receipt["rotations"][:1]}, match="not signed")
    refused(CASE.receipt | {"rotations": CASE.receipt["rotations"][1:]}, match="lead")
    refused(CASE.receipt | {"rotations": CASE.receipt["rotations"][::-1]}, match="order")
    refused(CASE.receipt | {"rotations": CASE.receipt["entries"]}, match="rotation")


def test_a_rotation_needs_both_keys():
    thief = SigningKey.generate(ORIGIN)
    for signers in [(thief, thief), (CASE.log.first, CASE.log.first)]:
        log = Log()
        log.key = log.first = CASE.log.first
        told = rotation_text(ORIGIN, 1, thief.vkey)
        by_old, by_new = (base64.b64encode(key.sign(told)).decode() for key in signers)
        index = log.append("rotate", vkey=thief.vkey, by_old=by_old, by_new=by_new)
        log.key = thief
        document = json.dumps(log.receipt(0, rotations=[index]))
        with pytest.raises(NotProven, match="does not lead"):
            check_receipt(document, log.first.vkey)


def test_a_rotation_is_an_entry_of_its_own_kind():
    log = Log()
    new = log.key.rotated()
    told = rotation_text(ORIGIN, 1, new.vkey)
    by_old, by_new = (base64.b64encode(key.sign(told)).decode() for key in (log.key, new))
    index = log.append("remark", vkey=new.vkey, by_old=by_old, by_new=by_new)
    log.key = new
    with pytest.raises(NotProven, match="rotates no key"):
        check_receipt(json.dumps(log.receipt(0, rotations=[index])), log.first.vkey)


def test_the_key_of_a_witness_signs_no_checkpoint():
    key = WitnessKey.generate(ORIGIN)
    text = checkpoint_text(ORIGIN, 1, bytes(32))
    signature = base64.b64encode(key.key_id + key.sign(text.encode())).decode()
    with pytest.raises(NotProven, match="not that of a log"):
        verifier.check_checkpoint(f"{text}\n\N{EM DASH} {ORIGIN} {signature}\n", key.vkey)


def test_a_rotation_cannot_be_moved_nor_lead_to_another_name_or_kind_of_key():
    other = SigningKey.generate("example.com/other")
    for new, stated_index in [(other, 1), (WitnessKey.generate(ORIGIN), 1), (None, 2)]:
        log = Log()
        fresh = new or log.key.rotated()
        told = rotation_text(ORIGIN, stated_index, fresh.vkey)
        by_old, by_new = (base64.b64encode(key.sign(told)).decode() for key in (log.key, fresh))
        index = log.append("rotate", vkey=fresh.vkey, by_old=by_old, by_new=by_new)
        document = json.dumps(log.receipt(0, rotations=[index]))
        with pytest.raises(NotProven, match="does not lead"):
            check_receipt(document, log.first.vkey)


def test_the_answer_is_the_one_that_was_released():
    assert CASE.check(answer=None).answer is None
    refused(answer=ANSWER + b"\n", match="not about this answer")
    refused(answer=b"", match="not about this answer")
    refused(CASE.log.receipt(CASE.charge, note=CASE.note, rotations=CASE.rotations))


def test_a_release_needs_a_charge_of_its_account_before_it():
    case = Case()
    log, digest = case.log, hashlib.sha256(ANSWER).hexdigest()
    orphan = log.append("release", account="salaries", charge=999, answer=digest)
    early = log.append("release", account="salaries", charge=orphan + 2, answer=digest)
    late = log.append("charge", account="salaries")
    theft = log.append("release", account="other", charge=case.charge, answer=digest)
    wrong = log.append("release", account="salaries", charge=case.release, answer=digest)
    reserve = log.append("reserve", account="salaries")
    good = log.append("release", account="salaries", charge=reserve, answer=digest)
    for indices in [
        (orphan,),
        (case.release,),
        (early, late),
        (case.charge, theft),
        (case.charge, case.release, wrong),
    ]:
        document = json.dumps(log.receipt(*indices, rotations=case.rotations))
        with pytest.raises(NotProven, match="is not shown"):
            check_receipt(document, log.first.vkey)
    document = json.dumps(log.receipt(reserve, good, rotations=case.rotations))
    assert check_receipt(document, log.first.vkey, answer=ANSWER).answer == good
    for fields in [{"account": "a", "charge": True}, {"account": 3, "charge": 1}, {"charge": 1}]:
        bad = log.append("release", answer=digest, **fields)
        document = json.dumps(log.receipt(1, bad, rotations=case.rotations))
        with pytest.raises(NotProven, match="a release has no"):
            check_receipt(document, log.first.vkey)


def test_witnesses_must_reach_the_quorum():
    second, vkey = WitnessKey.generate("witness.example/w2"), CASE.witness.vkey
    assert CASE.check(witnesses=[]).witnesses == ()
    assert len(CASE.check(witnesses=[second.vkey, vkey], quorum=1).witnesses) == 1
    refused(witnesses=[second.vkey, vkey], match="1 of the witnesses given cosigned, and 2 must")
    refused(witnesses=[second.vkey], match="0 of the witnesses")
    refused(quorum=2)
    refused(quorum=-1)
    refused(witnesses=[vkey, vkey], match="different keys")
    refused(witnesses=[CASE.log.key.vkey], match="different keys of witnesses")


def test_a_false_cosignature_is_refused_even_where_nobody_asked_for_it():
    elsewhere = sign_checkpoint(CASE.log.key, 10, bytes(32))
    line = cosign(CASE.witness, elsewhere, 1_679_315_147)
    receipt = CASE.receipt | {"checkpoint": CASE.note + line}
    refused(receipt, match="false", quorum=0)
    assert CASE.check(receipt, witnesses=[]).witnesses == ()  # unknown keys are ignored
    later = cosign(CASE.witness, CASE.note, 1_800_000_000)
    receipt = CASE.receipt | {"checkpoint": CASE.note + later + cosign(CASE.witness, CASE.note, 9)}
    proven = CASE.check(receipt)
    assert proven.witnesses == (("witness.example/w1", 1_800_000_000),)


def test_a_time_beyond_all_calendars_is_shown_as_a_number():
    note = CASE.log.note()
    line = cosign(CASE.witness, note, 2**63 - 1)
    proven = CASE.check(CASE.receipt | {"checkpoint": note + line})
    assert "9223372036854775807" in str(proven)


def raw_cosignature(time, signed_time):
    """Write a cosignature by hand: the specification once more, in other words."""
    key = CASE.witness
    text = checkpoint_text(ORIGIN, 10, _tree.root(CASE.log.frontier))
    signature = key.sign(b"cosignature/v1\ntime %d\n" % signed_time + text.encode())
    packed = key.key_id + time.to_bytes(8, "big") + signature
    return f"\N{EM DASH} {key.name} {base64.b64encode(packed).decode()}\n"


def test_cosignatures_are_read_as_specified():
    note = CASE.log.note()
    good = CASE.receipt | {"checkpoint": note + raw_cosignature(5, 5)}
    assert CASE.check(good).witnesses == (("witness.example/w1", 5),)
    for times in [(5, 6), (2**63, 2**63)]:
        refused(CASE.receipt | {"checkpoint": note + raw_cosignature(*times)}, match="false")


def meaning(document):
    def pairs(found):
        assert len(dict(found)) == len(found)
        return dict(found)

    return json.loads(document.decode(), object_pairs_hook=pairs)


@pytest.mark.lengthy
@pytest.mark.parametrize("indent", [None, 1])
def test_no_byte_can_change(indent):
    document = json.dumps(CASE.receipt, indent=indent).encode()
    options = {"answer": ANSWER, "witnesses": [CASE.witness.vkey]}
    original = check_receipt(document, CASE.log.first.vkey, **options)
    survivors = 0
    for at, is_bit in itertools.product(range(len(document)), (True, False)):
        flipped = bytearray(document)
        flipped[at] ^= 1 << secrets.randbelow(8) if is_bit else secrets.randbelow(255) + 1
        try:
            proven = check_receipt(bytes(flipped), CASE.log.first.vkey, **options)
        except NotProven:
            continue
        survivors += 1
        assert proven == original
        assert meaning(bytes(flipped)) == CASE.receipt
        assert document[at : at + 1].isspace()
    assert survivors < len(document) / 10


@pytest.mark.lengthy
@given(st.data())
def test_no_stretch_can_be_cut_doubled_or_overwritten(data):
    document = json.dumps(CASE.receipt).encode()
    start = data.draw(st.integers(0, len(document)))
    stop = data.draw(st.integers(start, min(len(document), start + 200)))
    filling = data.draw(st.sampled_from([b"", document[start:stop] * 2, b"0", b"null", b"\xff"]))
    altered = document[:start] + filling + document[stop:]
    options = {"answer": ANSWER, "witnesses": [CASE.witness.vkey]}
    try:
        proven = check_receipt(altered, CASE.log.first.vkey, **options)
    except NotProven:
        return
    assert proven == CASE.check()
    # A stretch with a whole signature line may be doubled: signatures of unknown keys are ignored.
    found = meaning(altered)
    assert set(CASE.note.split("\n")) <= set(found["checkpoint"].split("\n"))
    assert found | {"checkpoint": CASE.note} == CASE.receipt


def paths(value, here=()):
    yield here
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*here, key))


STRANGE = [None, True, 0, -1, 1.0, 2**80, "", "x", "\ud800", [], {}, [[]], {"a": 1}, "=", "AA=="]


@pytest.mark.lengthy
def test_every_member_replaced_or_removed_is_noticed():
    for path in paths(CASE.receipt):
        for strange in STRANGE:
            receipt = copy.deepcopy(CASE.receipt)
            target = receipt
            for key in path[:-1]:
                target = target[key]
            if not path:
                receipt = strange
            else:
                target[path[-1]] = strange
            refused(receipt)
        if path:
            del target[path[-1]]
            refused(receipt)
        if isinstance(target, dict) and path:
            receipt = copy.deepcopy(CASE.receipt)
            target = receipt
            for key in path[:-1]:
                target = target[key]
            target["extra"] = 1
            refused(receipt, match="does not belong")


def with_body(body, index=0):
    """Return a receipt whose log really holds this text as an entry."""
    log = Log()
    log.bodies, log.rows = [body], [leaf_hash(body.encode("utf-8", "surrogatepass"))]
    log.frontier = log.rows[0]
    receipt = log.receipt(0)
    receipt["entries"][0]["index"] = index
    return json.dumps(receipt), log.first.vkey


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        '{"index":0}',
        '{"kind":"charge"}',
        '{"index":1,"kind":"charge"}',
        '{"index":0.0,"kind":"charge"}',
        '{"index":false,"kind":"charge"}',
        '{"index":0,"index":0,"kind":"charge"}',
        '{"index":0,"kind":"charge","loss":{"a":1,"a":2}}',
        '{"index":0,"kind":"charge","loss":NaN}',
        '{"index":0,"kind":"charge","loss":-Infinity}',
        '{"index":0,"kind":"charge","loss":1e999}',
        '{"index":0,"kind":7}',
        '{"index":0,"kind":"charge"}x',
        '\ufeff{"index":0,"kind":"charge"}',
        '{"index":0,"kind":"charge","deep":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"index":0,"kind":"charge","long":' + "1" * 5_000 + "}",
    ],
)
def test_a_body_in_the_log_that_is_no_entry_is_refused(body):
    with pytest.raises(NotProven):
        check_receipt(*with_body(body))


def test_a_body_in_the_log_that_is_an_entry_is_accepted():
    document, vkey = with_body('{"index":0,"kind":"charge","who":"\\u001b[2J\\ud800","loss":1e3}')
    proven = check_receipt(document, vkey)
    assert proven.entries[0]["loss"] == 1000
    assert str(proven).isascii()  # and moves no cursor
    assert "\x1b" not in str(proven)


def test_a_sign_that_cannot_be_written_is_not_the_question_mark_often_put_for_it():
    document, vkey = with_body('{"index":0,"kind":"charge","who":"?"}')
    assert check_receipt(document, vkey)
    assert document.count("?") == 1
    with pytest.raises(NotProven, match="not the one in the log"):
        check_receipt(document.replace("?", "\\ud800"), vkey)


def test_no_depth_of_nesting_upsets_the_command(tmp_path, capsys):
    for depth in [*range(10, 900, 89), *range(900, 1000, 3)]:
        document, vkey = with_body(
            '{"index":0,"kind":"charge","loss":' + "[" * depth + "]" * depth + "}"
        )
        (tmp_path / "receipt.json").write_text(document)
        (tmp_path / "ledger.pub").write_text(vkey)
        asked = [str(tmp_path / "receipt.json"), "--key", str(tmp_path / "ledger.pub")]
        assert verifier.main(asked) in (0, 1)
        assert verifier.main([*asked, "--json"]) in (0, 1)
    capsys.readouterr()


def test_documents_that_are_none_are_refused():
    good = json.dumps(CASE.receipt)
    for document in [
        "",
        b"",
        b"\xff\xfe",
        "{",
        "[" * 100_000,
        "\ufeff" + good,
        good.encode("utf-16"),
        good + "x",
        good[:-1] + ',"format":"discreet-receipt/1"}',
        good.replace("receipt/1", "receipt/2"),
        good + " " * verifier.LONGEST,
    ]:
        with pytest.raises(NotProven):
            check_receipt(document, CASE.log.first.vkey)
    refused(CASE.receipt | {"entries": []}, match="not about|no entry")
    refused(CASE.receipt | {"entries": []}, answer=None, match="no entry")
    refused(CASE.receipt | {"entries": CASE.receipt["entries"][::-1]}, match="order")
    refused(CASE.receipt | {"entries": CASE.receipt["entries"][:1] * 2}, match="order")


def test_checkpoints_that_are_none_are_refused():
    log = CASE.log
    root = _tree.root(log.frontier)
    encoded = base64.b64encode(root).decode()

    def signed(text):
        signature = base64.b64encode(log.key.key_id + log.key.sign(text.encode())).decode()
        return f"{text}\n\N{EM DASH} {ORIGIN} {signature}\n"

    good = signed(f"{ORIGIN}\n10\n{encoded}\n")
    plain = {"witnesses": [], "vkey": log.first.vkey}
    assert CASE.check(CASE.receipt | {"checkpoint": good}, **plain).size == 10
    with pytest.raises(NotProven):
        CASE.check(CASE.receipt | {"checkpoint": signed(f"{ORIGIN}\n11\n{encoded}\n")}, **plain)
    line = good.split("\n")[-2]
    unused_bits = encoded[:-2] + chr(ord(encoded[-2]) + 1) + "="
    for note in [
        signed(f"{ORIGIN}\n010\n{encoded}\n"),
        signed(f"{ORIGIN}\n+10\n{encoded}\n"),
        signed(f"{ORIGIN}\n-10\n{encoded}\n"),
        signed(f"{ORIGIN}\n10 \n{encoded}\n"),
        signed(f"{ORIGIN}\n１０\n{encoded}\n"),  # noqa: RUF001
        signed(f"{ORIGIN}\n{2**63}\n{encoded}\n"),
        signed(f"{ORIGIN}\n{10**40}\n{encoded}\n"),
        signed(f"{ORIGIN}\n10\n{encoded}\nextension\n"),
        signed(f"{ORIGIN}\n10\n\n{encoded}\n"),
        signed(f"{ORIGIN}\n10\n"),
        signed(f"{ORIGIN}\n10\n{encoded[:-1]}\n"),
        signed(f"{ORIGIN}\n10\n{unused_bits}\n"),
        signed(f"{ORIGIN}\n10\n{base64.b64encode(root[:31]).decode()}\n"),
        signed(f"{ORIGIN}\n10\n{encoded}\r\n"),
        signed(f"example.com/other\n10\n{encoded}\n"),
        signed(f"example.com/a b\n10\n{encoded}\n"),
        signed(f"\n10\n{encoded}\n"),
        good[:-1],
        good + "\n",
        good + "x\n",
        good.replace("\N{EM DASH}", "-"),
        good.replace(line, line + " "),
        good.replace(line, line.replace(" ", "  ")),
        good.replace(line, ""),
        good.replace(f"{line}\n", ""),
        good + f"\N{EM DASH} {ORIGIN} AAAA\n",
        good + "\N{EM DASH} a+b AAAAAAAA\n",
        good + "".join(f"\N{EM DASH} w{n} AAAAAAAA\n" for n in range(100)),
        good
        + f"\N{EM DASH} {ORIGIN} "
        + base64.b64encode(log.key.key_id + bytes(64)).decode()
        + "\n",
    ]:
        with pytest.raises(NotProven):
            CASE.check(CASE.receipt | {"checkpoint": note}, **plain)
        with pytest.raises(NotProven):
            verifier.check_checkpoint(note, log.key.vkey)
    for size in (0, 1, 2**63 - 1):
        assert verifier.parse_checkpoint(sign_checkpoint(log.key, size, root)).size == size
    for bad in [
        sign_checkpoint(log.key, 2**63, root),
        sign_checkpoint(log.key, 1, root[:31]),
        sign_checkpoint(log.key, 1, root + b"x"),
        f"{line}\n",
        f"\n\n{line}\n",
    ]:
        with pytest.raises(NotProven):
            verifier.parse_checkpoint(bad)
    for sign in "\x00\t\r\x1f\ud800":
        with pytest.raises(NotProven, match="not a signed note"):
            verifier.parse_note(f"a{sign}b\n\n{line}\n")
    with pytest.raises(NotProven, match="not a signed note"):
        verifier.parse_note(f"{line}\n")
    others = "".join(f"\N{EM DASH} w{n} AAAAAAAA\n" for n in range(16))
    assert CASE.check(CASE.receipt | {"checkpoint": good + others}, **plain)


def test_known_keys_and_notes_of_other_programs():
    # From the documentation of golang.org/x/mod/sumdb/note.
    vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    text = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
    )
    encoded = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6Ry"
    encoded += "yBwJnAM="
    key = verifier.parse_vkey(vkey)
    found, [(name, key_id, signature)] = verifier.parse_note(
        f"{text}\n\N{EM DASH} PeterNeumann {encoded}\n"
    )
    assert (found, name, key_id) == (text, key.name, key.key_id)
    assert key.has_signed(text.encode(), signature)
    assert not key.has_signed(text.encode() + b" ", signature)
    # From the tests of github.com/transparency-dev/formats; the first has a plus in its Base64.
    assert verifier.parse_vkey("TEST+7997405c+AQcC+FTVKf0jlTdHDY3rbevmnKxxPjigCXlVtGe6RIr6").name
    cosigner = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"
    assert verifier.parse_vkey(cosigner).algorithm == 4


def test_keys_that_are_none_are_refused():
    good = CASE.log.first.vkey
    name, key_id, encoded = good.split("+", 2)

    def made(algorithm, public):
        told = hashlib.sha256(name.encode() + b"\n" + bytes([algorithm]) + public).hexdigest()
        return f"{name}+{told[:8]}+{base64.b64encode(bytes([algorithm]) + public).decode()}"

    public = base64.b64decode(encoded)[1:]
    assert made(1, public) == good
    for vkey in [
        "",
        name,
        f"{name}+{key_id}",
        f"+{key_id}+{encoded}",
        f"a b+{key_id}+{encoded}",
        f"{name}+{key_id.upper()}x+{encoded}",
        f"{name}+00000000+{encoded}",
        f"{name}x+{key_id}+{encoded}",
        f"{name}+{key_id}+{encoded}\n",
        f"{name}+{key_id}+{encoded[:-4]}",
        f"{name}+{key_id}+{encoded[:-1]}\u00e9",
        made(2, public),
        made(1, public[:-1]),
        made(1, public + b"x"),
        made(1, b""),
        f"\ud800+{key_id}+{encoded}",
    ]:
        with pytest.raises(NotProven):
            verifier.parse_vkey(vkey)
    for text in (good, f"{good}\n", f"{good}\r\n", f"{good}\nand more\n"):
        assert verifier.first_vkey(text) == good
    with pytest.raises(NotProven):
        verifier.first_vkey(f"\n{good}\n")


# --- the file as an auditor uses it ---


@pytest.fixture
def files(tmp_path):
    def write(name, data):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(tmp_path / name)

    return {
        "write": write,
        "receipt": write("receipt.json", json.dumps(CASE.receipt)),
        "key": write("ledger.pub", CASE.log.first.vkey + "\n"),
        "witness": write("witness.pub", CASE.witness.vkey + "\n"),
        "answer": write("answer.json", ANSWER),
    }


def test_the_command_says_in_words_or_json_what_is_proven(files, capsys):
    asked = [files["receipt"], "--key", files["key"], "--answer", files["answer"]]
    asked += ["--witness", files["witness"]]
    assert verifier.main(asked) == 0
    assert capsys.readouterr().out.startswith("proven: these entries are in the log of example.com")
    assert verifier.main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["proven"] is True
    assert told["entries"][1]["charge"] == CASE.charge
    assert told["witnesses"] == [{"name": "witness.example/w1", "time": 1_679_315_147}]
    assert base64.b64decode(told["root"]) == _tree.root(CASE.log.frontier)


def test_the_command_gives_one_line_of_reason(files, capsys):
    wrong = files["write"]("wrong.json", b"another answer")
    asked = [files["receipt"], "--key", files["key"], "--answer", wrong]
    assert verifier.main(asked) == 1
    assert capsys.readouterr().err == "NOT PROVEN: the receipt is not about this answer\n"
    assert verifier.main([*asked, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["proven"] is False
    empty = files["write"]("empty.json", b"")
    assert verifier.main([empty, "--key", files["key"]]) == 1
    assert verifier.main([files["receipt"], "--key", empty]) == 1
    asked = [files["receipt"], "--key", files["key"], "--witness", files["witness"]]
    assert verifier.main([*asked, "--quorum", "2"]) == 1
    assert capsys.readouterr().err.count("\n") == 3


def test_the_command_says_what_it_cannot_read(files, capsys):
    assert verifier.main(["no-such-file", "--key", files["key"]]) == 2
    assert verifier.main([files["receipt"], "--key", "no-such-file"]) == 2
    assert verifier.main([files["receipt"], "--key", files["key"], "--answer", "no-such"]) == 2
    binary = files["write"]("binary.pub", b"\xff\xfe")
    assert verifier.main([files["receipt"], "--key", binary]) == 2
    assert capsys.readouterr().err.count("cannot read") == 4
    with pytest.raises(SystemExit) as stop:
        verifier.main([])
    assert stop.value.code == 2


def test_the_file_stands_alone(files, tmp_path):
    source = Path(verifier.__file__)
    imported = set()
    for item in ast.walk(ast.parse(source.read_text())):
        if isinstance(item, ast.Import):
            imported |= {name.name.split(".")[0] for name in item.names}
        elif isinstance(item, ast.ImportFrom):
            imported.add((item.module or "discreet").split(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"cryptography"}

    copied = shutil.copy(source, tmp_path / "copied_verifier.py")
    asked = [sys.executable, "-I", copied, files["receipt"], "--key", files["key"]]
    run = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "proven" in run.stdout


P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


def small_order_points():
    """Return all encodings of the eight points of small order, from the curve's equation."""
    root = pow(2, (P - 1) // 4, P)  # of -1

    def x_of(y):
        square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
        x = pow(square, (P + 3) // 8, P)
        return x if x * x % P == square else x * root % P

    def double(point):
        (x, y), k = point, D * point[0] * point[0] * point[1] * point[1] % P
        over = 2 * x * y * pow(1 + k, -1, P), (y * y + x * x) * pow(1 - k, -1, P)
        return over[0] % P, over[1] % P

    found = set()
    for encoding in verifier._SMALL_ORDER:
        y = int.from_bytes(encoding, "little") % P
        point = (x_of(y), y)
        for _ in range(3):
            point = double(point)
        assert point == (0, 1), encoding.hex()
        found.add(y)
    return found


def test_the_refused_keys_are_the_points_of_small_order():
    # y of the points of order 1, 2, 4 and 8, two of the latter: five numbers in all.
    assert len(small_order_points()) == 5
    for encoding in verifier._SMALL_ORDER:
        for sign in (0, 0x80):
            public = bytes((*encoding[:31], encoding[31] | sign))
            key = verifier.VerifierKey("example.com/ledger", verifier.LOG, public)
            told = base64.b64encode(bytes([verifier.LOG]) + public).decode()
            with pytest.raises(verifier.NotProven, match="anybody"):
                verifier.parse_vkey(f"{key.name}+{key.key_id.hex()}+{told}")
