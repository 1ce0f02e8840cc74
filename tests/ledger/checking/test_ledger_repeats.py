"""The quick way through repeated charges comes to what the rules come to, and is really taken."""

import random

import pytest

from discreet.accounting import GaussianLoss, LaplaceLoss, PureLoss
from discreet.errors import TamperingFound
from discreet.ledger import Ledger
from discreet.ledger.checking.replay_cache import ReplayCache
from discreet.privacy import Guarantee, Unit


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        for name in ("sà- lär", "photos"):
            account = ledger.create(
                name,
                unit=Unit.record(),
                neighbours="add_remove",
                guarantee=Guarantee(epsilon=5, delta=1e-6),
            )
            account.limit(Guarantee(epsilon=3, delta=1e-7), analyst="ana")
            account.limit(Guarantee(epsilon=4, delta=1e-7), purpose='"quoted"')
            account.limit(Guarantee(epsilon=4, delta=1e-7), analyst="*", every="month")
        yield ledger


def plain_account(ledger):
    return ledger.create(
        "people",
        unit=Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=1, delta=1e-6),
    )


def charge_at_random(ledger, times):
    losses = [
        LaplaceLoss(noise_multiplier=5000),
        GaussianLoss(noise_multiplier=500),
        PureLoss(epsilon=1e-4) + LaplaceLoss(noise_multiplier=9000),
    ]
    accounts = list(ledger)
    for n in range(times):
        random.choice(accounts).charge(
            random.choice(losses),
            who=random.choice(["ana", "bo", "Zoë"]),
            purpose=random.choice(["report", '"quoted"']),
            key=random.choice([None, f"key {n}"]),
        )


@pytest.mark.lengthy
def test_it_comes_to_what_the_rules_come_to(ledger, monkeypatch):
    charge_at_random(ledger, 300)
    quick = ledger.verify()
    monkeypatch.setattr(ReplayCache, "replay", lambda *_: None)
    assert ledger.verify() == quick


@pytest.mark.lengthy
def test_it_is_taken_wherever_a_charge_repeats(tmp_path, monkeypatch):
    taken = []
    replay = ReplayCache.replay

    def counted(self, row, last, time):
        found = replay(self, row, last, time)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(ReplayCache, "replay", counted)
    with Ledger.open(tmp_path / "plain.db") as ledger:
        account = plain_account(ledger)
        for _ in range(50):
            account.charge(LaplaceLoss(noise_multiplier=10**6), who="ana", purpose="report")
        account.grant(Guarantee(epsilon=2, delta=1e-6), who="chris", reason="more")
        for _ in range(50):
            account.charge(LaplaceLoss(noise_multiplier=10**6), who="ana", purpose="report")
        ledger.verify()
    # Two entries before, the first charge, the grant, and the first charge after it.
    assert (taken.count(True), taken.count(False)) == (98, 5)


@pytest.mark.parametrize(
    "edit",
    [
        lambda body: body.replace('"who":"ana"', '"who":"ana","who":"ana"'),
        lambda body: body.replace('"noise_multiplier":1000000', '"noise_multiplier":9000000'),
        lambda body: body.replace('"purpose":"report"', '"purpose":"report","x":1'),
        lambda body: body.replace('"index":', '"index": '),
        lambda body: body.replace("Z", "z"),
        lambda body: body.replace('"total":"', '"total":"1'),
        lambda body: body[:-1],
        lambda body: body + " ",
    ],
)
def test_it_lets_nothing_through(tmp_path, edit):
    """Edit one charge of many and make all hashes after it fit: only the content can tell."""
    from discreet.ledger.checking.replay import Replay
    from discreet.ledger.rules.entry import NOTHING_BEFORE, decode
    from discreet.ledger.stores.protocol import Row
    from discreet.ledger.verifier import leaf_hash
    from discreet.ledger.writing.scribe import account_of

    with Ledger.open(tmp_path / "plain.db") as ledger:
        account = plain_account(ledger)
        for _ in range(9):
            account.charge(LaplaceLoss(noise_multiplier=10**6), who="ana", purpose="report")
        with ledger._session.read() as view:
            rows = list(view.rows(0, 100))
    last = old = NOTHING_BEFORE
    forged = []
    for row in rows:
        body = row.body.replace(f'"previous":"{old}"', f'"previous":"{last}"')
        body = edit(body) if row.index == 6 else body
        old, last = leaf_hash(row.body.encode()).hex(), leaf_hash(body.encode()).hex()
        forged.append(Row(row.index, account_of(decode(row.body)), row.key, body, None))
    replay = Replay(lambda index: forged[index])
    with pytest.raises(TamperingFound) as found:
        replay.add_all(forged, size=len(forged))
    assert found.value.entry == 6
