"""A gateway, or somebody on the way, that alters what it says."""

import json

import pytest

from discreet.client.transport import GatewayCall
from discreet.errors import DiscreetError, ParameterError, TamperingFound

COUNT = "SELECT COUNT(*) AS n FROM people"


def altered(both, change):
    """Return tables whose gateway alters its answers on the way."""
    tables = both.remote()
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
