"""The analyser: pays first, opens once, counts exactly, and publishes nothing of too few."""

import json

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from shuffle_rooms import LAW, Rooms

from discreet.accounting import ApproximateLoss, PureLoss
from discreet.errors import BudgetExceeded, DataError, ParameterError, TryLater
from discreet.local import DirectResponse
from discreet.local.wire import encode, report_length
from discreet.privacy import Guarantee, Unit
from discreet.shuffle import Analyser, AnalyserSettings, BatchFacts, Envelopes
from discreet.shuffle.batches.batch import sign_batch
from discreet.shuffle.envelopes.keys import plain_text


@pytest.fixture
def mixing() -> Ed25519PrivateKey:
    """The key of a shuffler that says what a test wants."""
    return Ed25519PrivateKey.generate()


def text_of(key: Ed25519PrivateKey) -> str:
    return plain_text(key.public_key().public_bytes_raw())


def batch_of(rooms, envelopes, key, **change):
    told = {
        "collection": rooms.parameters.collection,
        "digest": rooms.parameters.digest.hex(),
        "number": 1,
        "id": "ab" * 16,
        "senders": len(envelopes),
        "minimum": 5,
        "limit": 1,
        "dummies": 0,
        "envelopes": len(envelopes),
        "length": Envelopes.of(rooms.parameters).length,
    }
    return sign_batch(BatchFacts(**told | change), b"".join(envelopes), key=key).raw


def envelopes_of(rooms, reports):
    envelopes = Envelopes.of(rooms.parameters)
    return [envelopes.seal(one, key=rooms.key) for one in reports]


def test_it_pays_before_it_opens_and_both_once(rooms, mixing):
    raw = batch_of(rooms, [one.envelope for one in rooms.arrivals(10)], mixing)
    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        for _ in range(3):
            assert analyser.keep(raw, shuffler=text_of(mixing)) == 1
        (opened,) = analyser.open_kept(ledger["tea"], who="ana")
        assert opened.accepted == 10
        assert analyser.open_kept(ledger["tea"], who="ana") == []
        entries = ledger.history("tea")
        assert [one["kind"] for one in entries] == ["account", "charge", "release"]
        assert opened.entry == entries[1]["index"]
        # Kept again later, from a shuffler that missed the answer: still known.
        analyser.keep(raw, shuffler=text_of(mixing))
        assert analyser.open_kept(ledger["tea"], who="ana") == []
        assert analyser.estimate().n == 10


def test_whoever_resumes_opens_what_somebody_else_has_paid_for(rooms, mixing, monkeypatch):
    raw = batch_of(rooms, [one.envelope for one in rooms.arrivals(10)], mixing)

    def crash(*_, **__):
        raise KeyboardInterrupt

    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        analyser.keep(raw, shuffler=text_of(mixing))
        with monkeypatch.context() as broken:
            broken.setattr("discreet.shuffle.analyser.analyser.sort_out", crash)
            with pytest.raises(KeyboardInterrupt):
                analyser.open_kept(ledger["tea"], who="ana")
        (opened,) = analyser.open_kept(ledger["tea"], who="bea")
        assert opened.accepted == 10
        kinds = [one["kind"] for one in ledger.history("tea")]
        assert kinds == ["account", "charge", "release"]


def test_what_is_charged_is_amplified_by_the_honest_alone(tmp_path, mixing):
    rooms = Rooms.make(tmp_path, senders=2000, minimum=1000)
    settings = {"parameters": rooms.parameters, "minimum": 1000, "delta": 1e-8}
    costs = []
    for share in (1, 0.5, 0):
        place = tmp_path / f"{share}.db"
        with Analyser.make(place, AnalyserSettings(**settings, honest=share)) as analyser:
            told = BatchFacts(
                collection=rooms.parameters.collection,
                digest=rooms.parameters.digest.hex(),
                number=1,
                id="ab" * 16,
                senders=2000,
                minimum=1000,
                limit=1,
                dummies=0,
                envelopes=2000,
                length=analyser.settings.envelopes.length,
            )
            costs.append(analyser.settings.amplification(told))
    assert [one.honest for one in costs] == [2000, 1000, 0]
    assert isinstance(costs[0].loss, ApproximateLoss)
    assert costs[0].loss.epsilon < costs[1].loss.epsilon < LAW.epsilon
    assert costs[2].loss == PureLoss(epsilon=LAW.loss.epsilon_pure)


def test_a_senders_further_envelopes_are_charged_in_full(tmp_path):
    rooms = Rooms.make(tmp_path, limit=2)
    with rooms.shuffler() as shuffler:
        for _ in range(2):
            shuffler.accept(rooms.arrivals(5))
        shuffler.release()
    with rooms.open_all() as analyser, rooms.ledger() as ledger:
        assert analyser.estimate().n == 10
        (charge,) = (one for one in ledger.history("tea") if one["kind"] == "charge")
    assert {(part["kind"], times) for part, times in charge["loss"]["parts"]} == {
        ("approximate", 1),
        ("pure", 1),
    }


def test_what_the_account_cannot_pay_stays_closed(rooms, mixing):
    raw = batch_of(rooms, [one.envelope for one in rooms.arrivals(10)], mixing)
    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        poor = ledger.create(
            "poor",
            unit=Unit.record(),
            neighbours="replace_one",
            guarantee=Guarantee(epsilon=0.01),
        )
        analyser.keep(raw, shuffler=text_of(mixing))
        with pytest.raises(BudgetExceeded):
            analyser.open_kept(poor, who="ana")
        assert analyser.opened == []
        with pytest.raises(TryLater):
            analyser.estimate()
        assert len(analyser.open_kept(ledger["tea"], who="ana")) == 1  # it can be opened later


def test_an_account_of_another_relation_is_refused(rooms, mixing):
    raw = batch_of(rooms, [one.envelope for one in rooms.arrivals(10)], mixing)
    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        other = ledger.create(
            "other", unit=Unit.record(), neighbours="add_remove", guarantee=Guarantee(epsilon=9)
        )
        analyser.keep(raw, shuffler=text_of(mixing))
        with pytest.raises(ParameterError, match="accounts of replace_one, but 'other' is of add_"):
            analyser.open_kept(other, who="ana")
        assert [one["kind"] for one in ledger.history("other")] == ["account"]


def test_rejects_are_counted_exactly(rooms, mixing):
    parameters, length = rooms.parameters, report_length(rooms.parameters)
    good = encode(parameters, LAW.release([1] * 8))
    other = bytearray(good[0])
    other[5] ^= 1
    beyond = good[1][:-1] + b"\xff"
    strange = b"\7" + good[2][1:]
    envelopes = envelopes_of(rooms, [*good, good[3], bytes(other), beyond, strange])
    broken = [Envelopes.of(parameters).header + bytes(len(envelopes[0]) - 17)] * 2
    raw = batch_of(rooms, [*envelopes, *broken], mixing)
    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        analyser.keep(raw, shuffler=text_of(mixing))
        (found,) = analyser.open_kept(ledger["tea"], who="ana")
        assert length == len(good[0])
        assert (found.accepted, found.dropped, found.unreadable) == (8, 6, 2)
        assert (found.malformed, found.foreign, found.out_of_range, found.replayed) == (1, 1, 1, 1)
        # The same reports in new envelopes, in a later batch: a token is known for ever.
        again = batch_of(rooms, envelopes_of(rooms, good), mixing, number=2, id="cd" * 16)
        analyser.keep(again, shuffler=text_of(mixing))
        (found,) = analyser.open_kept(ledger["tea"], who="ana")
        assert (found.accepted, found.replayed) == (0, 8)
        assert analyser.estimate().n == 8


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"collection": "00" * 8}, "another collection"),
        ({"digest": "00" * 8}, "other parameters"),
        ({"minimum": 2, "senders": 4}, "4 senders, fewer than the 5"),
    ],
)
def test_what_is_not_for_it_is_not_kept(rooms, mixing, change, why):
    envelopes = [one.envelope for one in rooms.arrivals(change.get("senders", 10))]
    with rooms.analyser() as analyser:
        with pytest.raises(DataError, match=why):
            analyser.keep(batch_of(rooms, envelopes, mixing, **change), shuffler=text_of(mixing))
        assert analyser._state.rows("SELECT * FROM batches") == []


def test_a_shuffler_that_says_two_things_is_not_believed(rooms, mixing):
    first, second = (
        batch_of(rooms, [one.envelope for one in rooms.arrivals(10)], mixing) for _ in range(2)
    )
    with rooms.analyser() as analyser:
        analyser.keep(first, shuffler=text_of(mixing))
        with pytest.raises(DataError, match="two different batches with the number 1"):
            analyser.keep(second, shuffler=text_of(mixing))


def test_there_is_no_estimate_of_too_few(rooms, mixing):
    broken = [Envelopes.of(rooms.parameters).header + bytes(116)] * 5
    envelopes = [one.envelope for one in rooms.arrivals(4)]
    length = Envelopes.of(rooms.parameters).length
    raw = batch_of(rooms, [*envelopes, *(one[:length] for one in broken)], mixing)
    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        analyser.keep(raw, shuffler=text_of(mixing))
        (found,) = analyser.open_kept(ledger["tea"], who="ana")
        assert (found.accepted, found.unreadable) == (4, 5)
        with pytest.raises(TryLater, match="fewer than 5 senders' reports"):
            analyser.estimate()


def test_the_estimate_is_unbiased_with_dummies_and_a_naive_one_is_not(tmp_path):
    law = DirectResponse(domain=4, epsilon=4)
    rooms = Rooms.make(tmp_path, senders=500, minimum=500, dummies=1500, law=law)
    with rooms.shuffler() as shuffler:
        shuffler.accept(rooms.arrivals(500, value=2))
        shuffler.release()
    with rooms.open_all() as analyser:
        found = analyser.estimate()
    truth = np.array([0, 0, 500, 0])
    assert found.n == 500
    assert (np.abs(found.counts - truth) < 7 * found.standard_error).all()
    # The dummies' share of each count is 375, and the errors that a naive reader states some 11.
    naive = np.abs(found.of_all.counts - truth) / found.of_all.standard_error
    assert naive.max() > 14
    low, high = found.interval(confidence=1 - 1e-9)
    assert (low <= truth).all()
    assert (truth <= high).all()


@pytest.mark.slow
def test_the_error_with_dummies_is_the_one_stated():
    from discreet.shuffle.analyser.estimate import without_dummies

    n, dummies, trials = 2000, 1000, 2500
    rng = np.random.default_rng()
    errors = []
    for _ in range(trials):
        values = np.concatenate([np.full(n, 1), rng.integers(0, 4, dummies)])
        found = without_dummies(LAW.estimate(LAW.release(values)), dummies=dummies)
        errors.append((found.counts - np.array([0, n, 0, 0])) / found.standard_error)
    ratio = float((np.array(errors) ** 2).mean())
    assert abs(ratio - 1) < 0.1


def test_what_is_kept_holds_no_more_than_the_randomised_reports(rooms, mixing):
    raw = batch_of(rooms, [one.envelope for one in rooms.arrivals(10)], mixing)
    with rooms.analyser() as analyser, rooms.ledger() as ledger:
        analyser.keep(raw, shuffler=text_of(mixing))
        analyser.open_kept(ledger["tea"], who="ana")
        ((facts, found, envelopes, reports),) = analyser._state.rows(
            "SELECT facts, found, envelopes, reports FROM batches"
        )
    assert envelopes is None
    assert len(reports) == 10 * report_length(rooms.parameters)
    assert set(json.loads(facts)) == set(BatchFacts.__slots__)
    assert json.loads(found)["accepted"] == 10
