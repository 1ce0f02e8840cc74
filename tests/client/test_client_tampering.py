"""A gateway, or somebody on the way, that alters what it says."""

import contextlib
import json
import shutil
from base64 import b64encode
from hashlib import sha256
from urllib.parse import parse_qsl

import pytest

from discreet.client.log_watch import LogWatch
from discreet.client.transport import GatewayCall
from discreet.errors import DiscreetError, ParameterError, TamperingFound
from discreet.ledger import Ledger
from discreet.ledger.verifier import check_receipt, parse_checkpoint

COUNT = "SELECT COUNT(*) AS n FROM people"


def altered(both, change, who="ana"):
    """Return tables whose gateway alters its answers on the way."""
    tables = both.remote(who)
    real = tables._wire

    class Meddler:
        def call(self, call):
            document = real.call(call)
            return change(call, document) or document

        def close(self):
            real.close()

    tables._wire = Meddler()
    tables._log._wire = tables._wire
    return tables


def in_answers(change):
    def meddle(call, document):
        if call.path.endswith("/query"):
            return change(document)
        return None

    return meddle


def swapped(document):
    text = document["document"]
    return {**document, "document": text.replace('"nonce":"', '"nonce":"0')}


def without_release(document):
    bodies = [one for one in document["receipt"] if '"kind":"release"' not in one]
    reask = json.dumps({"kind": "reask", "index": 9})
    return {**document, "receipt": [*bodies, reask]}


def of_another_charge(document):
    charge, release, *_ = document["receipt"]
    entry = json.loads(charge)
    return {**document, "receipt": [json.dumps({**entry, "index": entry["index"] + 1}), release]}


@pytest.mark.parametrize("change", [swapped, without_release, of_another_charge])
def test_an_altered_answer_is_found_out(both, change):
    with altered(both, in_answers(change)) as tables, pytest.raises(TamperingFound):
        tables.sql(COUNT, epsilon=1)


@pytest.mark.parametrize(
    "change",
    [lambda d: {"document": 7}, lambda d: {**d, "document": "{}"}, lambda d: {**d, "receipt": [7]},
     lambda d: {**d, "receipt": ["[]"]}, lambda d: {**d, "left": "much"},
     lambda d: {**d, "more": "x"},
     lambda d: {**d, "receipt": 3}, lambda d: {**d, "receipt": []}],
)  # fmt: skip
def test_what_is_no_answer_is_told(both, change):
    with altered(both, in_answers(change)) as tables, pytest.raises(DiscreetError):
        tables.sql(COUNT, epsilon=1)


def test_an_answer_that_was_not_recorded_comes_with_a_warning(both):
    def alone(document):
        return {**document, "receipt": document["receipt"][:1]}

    with (
        altered(both, in_answers(alone)) as tables,
        pytest.warns(RuntimeWarning, match="on record"),
    ):
        assert tables.sql(COUNT, epsilon=1).columns == ("n",)


def test_false_receipts_and_rewritten_logs_are_found_out(both):
    with both.remote() as honest:
        other = honest.sql(f"{COUNT} WHERE age > 41", epsilon=1)
        old = honest._wire.call(GatewayCall("GET", f"/v1/receipts/{other.receipt.index + 1}"))

    def false(call, document):
        if "/receipts/" in call.path:
            return old
        if "consistency" in call.path:
            return {**document, "proof": ["A" * 43 + "="] * len(document["proof"])}
        return None

    with altered(both, false) as tables:
        answer = tables.sql(f"{COUNT} WHERE age > 42", epsilon=1)
        with pytest.raises(TamperingFound, match="not those that it gave"):
            tables.receipt(answer)
        with pytest.raises(DiscreetError, match="other entries"):
            tables.receipt(answer.receipt.index)
        tables.checkpoint()
        tables.sql(f"{COUNT} WHERE age > 43", epsilon=1)
        with pytest.raises(TamperingFound, match="rewritten, rolled back or forked"):
            tables.verify_log()

    def rolled_back(call, document):
        if "consistency" in call.path:
            raise ParameterError("sizes must grow and end at 3 entries.", parameter="size")

    with altered(both, rolled_back) as tables, pytest.raises(TamperingFound, match="rolled back"):
        tables.verify_log()

    def forged(call, document):
        if "/receipts/" in call.path:
            entries = [dict(one) for one in document["entries"]]
            entries[0]["proof"] = list(reversed(entries[0]["proof"]))
            return {**document, "entries": entries}
        return None

    with altered(both, forged) as tables, pytest.raises(TamperingFound, match="does not prove"):
        tables.receipt(tables.sql(f"{COUNT} WHERE age > 44", epsilon=1))


def test_a_made_up_answer_is_not_proven_by_the_proof_that_it_was_asked_for(both):
    """Whoever asks again is told of a charge, an answer and his own entry: all are to be proven."""
    asked = f"{COUNT} WHERE age > 61"
    with both.remote("ana") as ana:
        ana.sql(asked, epsilon=1)

    def made_up(call, document):
        if "/receipts/" in call.path:
            return {**document, "entries": document["entries"][-1:]}
        if not call.path.endswith("/query"):
            return None
        text = document["document"].replace('"nonce":"', '"nonce":"0')
        charge, release, reask = document["receipt"]
        told = {**json.loads(release), "answer": sha256(text.encode()).hexdigest()}
        return {**document, "document": text, "receipt": [charge, json.dumps(told), reask]}

    with altered(both, made_up, who="ben") as tables:
        answer = tables.sql(asked, epsilon=1)
        with pytest.raises(TamperingFound, match="not about this answer"):
            tables.receipt(answer)
    with both.remote("ben") as tables:
        answer = tables.sql(asked, epsilon=1)
        proof = tables.receipt(answer).to_json()
        assert check_receipt(proof, tables.vkey, answer=answer.to_json()).answer is not None


def test_other_documents_are_checked_too(both):
    for path, act in (
        ("/quote", lambda t: t.quote(COUNT, epsilon=1)),
        ("/plan", lambda t: t.plan([COUNT], epsilon=1)),
        ("/jobs", lambda t: t.begin(COUNT, epsilon=1)),
        ("/budgets", lambda t: t.budgets()),
        ("/datasets", lambda t: t.datasets()),
        ("/people", lambda t: t.remaining),
        ("/checkpoint", lambda t: t.checkpoint()),
    ):
        for odd in ({"x": 1}, {"text": 1, "answers": 3, "datasets": 7, "budgets": 7, "tables": []}):
            with (
                altered(
                    both, lambda c, d, p=path, o=odd: o if c.path.endswith(p) else None
                ) as tables,
                pytest.raises(DiscreetError, match=r"gateway sent|no quote"),
            ):
                act(tables)


def test_plans_with_other_answers_than_asked_are_refused(both):
    for odd in (None, [], [{}]):

        def change(call, document, odd=odd):
            return {**document, "answers": odd} if (call.body or {}).get("release") else None

        with altered(both, change) as tables, pytest.raises(DiscreetError, match="gateway sent"):
            tables.plan([COUNT], epsilon=1).release()


@pytest.fixture
def forks(tmp_path, monkeypatch):
    """Two ledgers with one beginning and one key, as somebody has who copies files."""
    (tmp_path / "copy").mkdir()
    monkeypatch.setenv("DISCREET_LEDGER_ANCHORS", str(tmp_path / "here"))
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.act("key.created", who="chris", subject="in common")
    for file in tmp_path.glob("budget.db*"):
        shutil.copy(file, tmp_path / "copy")
    with contextlib.ExitStack() as stack:
        found = []
        for number, folder in enumerate((tmp_path, tmp_path / "copy")):
            (tmp_path / f"host{number}").mkdir()
            monkeypatch.setenv("DISCREET_LEDGER_ANCHORS", str(tmp_path / f"host{number}"))
            ledger = stack.enter_context(Ledger.open(folder / "budget.db"))
            for _ in range(1 + 4 * number):
                ledger.act("key.created", who="chris", subject=f"of {number} alone")
            found.append(ledger)
        yield found


def test_two_logs_are_not_taken_for_one_though_each_continues_itself(forks):
    class Liar:
        """Proves of each checkpoint that something continues it, and shows another log next."""

        shown = forks[0]

        def call(self, call):
            numbers = dict(parse_qsl(call.path.partition("?")[2]))
            proof = []
            if numbers:
                old = int(numbers["old"])
                for ledger in forks:
                    for new in (None, int(numbers.get("new", old))):
                        with contextlib.suppress(ParameterError):
                            proof = ledger.consistency(old, new) or proof
            return {
                "checkpoint": self.shown.checkpoint(),
                "vkey": self.shown.vkey,
                "proof": [b64encode(one).decode() for one in proof],
            }

    liar = Liar()
    watch = LogWatch(liar)
    watch.checkpoint()
    liar.shown = forks[1]
    watch.checkpoint()
    with pytest.raises(TamperingFound, match="forked"):
        watch.verify()


def test_what_was_seen_at_any_time_is_proven_to_be_of_one_log(both):
    with both.remote() as tables:
        kept = [tables.checkpoint()]
        for age in (51, 52, 53):
            tables.sql(f"{COUNT} WHERE age > {age}", epsilon=1)
            kept.append(tables.checkpoint())
        assert tables.verify_log(since=kept[0]).size == parse_checkpoint(kept[-1]).size
        assert list(tables._log._seen) == [parse_checkpoint(kept[-1]).size]
