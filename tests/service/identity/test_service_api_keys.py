import multiprocessing
import time

import psycopg
import pytest

from discreet.errors import LedgerUnavailable, ParameterError, Unauthenticated
from discreet.ledger.writing.request import text as ledger_text
from discreet.service.identity import api_keys, doorkeeper
from discreet.service.identity.doorkeeper import Doorkeeper
from discreet.service.identity.login import Role
from discreet.service.identity.scram import ScramVerifier
from discreet.service.records import Records
from discreet.testing import PostgresServer

spawning = multiprocessing.get_context("spawn")


@pytest.fixture
def location(tmp_path):
    return str(tmp_path / "gateway.db")


@pytest.fixture
def records(location):
    with Records.open(location) as opened:
        yield opened


@pytest.fixture
def keeper(records, clock):
    return Doorkeeper(records, clock=clock)


def make(records, **how):
    return api_keys.create(records, **({"who": "ana", "roles": [Role.ANALYST]} | how))


def refused(keeper, token):
    with pytest.raises(Unauthenticated) as caught:
        keeper.login(token)
    assert str(caught.value) == str(Unauthenticated())
    assert caught.value.__cause__ is None
    return True


def until_refused(location, token, ready, ended):
    with Records.open(location) as records:
        keeper = Doorkeeper(records)
        keeper.login(token)
        ready.set()
        while True:
            try:
                keeper.login(token)
            except Unauthenticated:
                ended.put(time.time())
                return


def test_a_key_lets_in_whom_it_was_made_for(records, keeper):
    soon = time.time() + 60
    roles = [Role.ANALYST, Role.AUDITOR]
    key, text = make(records, roles=roles, datasets=["visits"], expires=soon)
    login = keeper.login(text)
    assert (login.who, login.roles, login.key) == ("ana", frozenset(roles), key.id)
    assert (login.datasets, login.expires) == (frozenset({"visits"}), soon)
    assert keeper.login_by_id(key.id) == login


def test_no_secret_is_kept_or_shown(records):
    key, text = make(records)
    secret = text.split("_")[2]
    (row,) = records.run("SELECT * FROM api_keys")
    shown = f"{row} {key!r} {api_keys.all_keys(records)!r}"
    assert secret not in shown
    assert key.digest not in repr(key)
    assert key.verifier not in repr(key)
    assert len(secret) == 43  # of 62 letters: 256 bits


def test_what_is_wrong_with_a_key_is_not_told(records, keeper):
    (one, text), (two, other) = make(records), make(records)
    last = "a" if text[-1] != "a" else "b"
    swapped = text.replace(one.id, two.id)
    for wrong in (text[:-1], text[:-1] + last, swapped, text + "x", text + "\n", f" {text}"):
        assert refused(keeper, wrong)
    for wrong in ("", "dk_", f"dk_{one.id}", f"dk_{one.id}_", text.upper(), "dk_" + "é" * 54):
        assert refused(keeper, wrong)
    for wrong in ("\0", "\ud800", text.replace("_", "\uff3f"), "dk_" + "x" * 10 + "_" + 43 * "x"):
        assert refused(keeper, wrong)
    assert keeper.login(text).key == one.id
    assert keeper.login(other).key == two.id


def test_a_megabyte_is_refused_at_once(records, keeper):
    _, text = make(records)
    for huge in (text + (1 << 20) * "x", (1 << 20) * ".", "dk_" + (1 << 20) * "_"):
        begun = time.perf_counter()
        assert refused(keeper, huge)
        assert time.perf_counter() - begun < 0.05


def test_a_key_ends_when_it_expires(records, keeper, monkeypatch):
    now = time.time()
    key, text = make(records, expires=now + 10)
    keeper.login(text)
    monkeypatch.setattr(doorkeeper.time, "time", lambda: now + 10)
    assert refused(keeper, text)
    with pytest.raises(Unauthenticated):
        keeper.login_by_id(key.id)


def test_a_revoked_key_ends_within_a_second_and_stays_on_record(records, keeper, clock):
    key, text = make(records)
    keeper.login(text)
    assert api_keys.revoke(records, key.id)
    assert not api_keys.revoke(records, key.id)
    clock.now += 1.0
    assert refused(keeper, text)
    with pytest.raises(Unauthenticated):
        keeper.login_by_id(key.id)
    (kept,) = api_keys.all_keys(records)
    assert kept.revoked is not None


def test_within_a_second_the_records_are_left_alone(records, keeper, monkeypatch, clock):
    _, text = make(records)
    keeper.login(text)
    monkeypatch.setattr(records, "run", None)
    for _ in range(3):
        keeper.login(text)


@pytest.mark.lengthy
def test_another_process_sees_a_revocation_within_a_second(location, records):
    key, text = make(records)
    ready, ended = spawning.Event(), spawning.Queue()
    other = spawning.Process(target=until_refused, args=(location, text, ready, ended))
    other.start()
    assert ready.wait(60)
    api_keys.revoke(records, key.id)
    revoked = time.time()
    assert ended.get(timeout=60) - revoked < 1.5  # a second, and a busy machine
    other.join()


def test_without_records_nobody_gets_in_and_nobody_is_called_a_stranger(records, keeper, clock):
    _, text = make(records)
    keeper.login(text)
    records.close()
    clock.now += 1.0
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="closed"):
            keeper.login(text)


def test_scram_knows_each_key_and_gives_away_none(location, records, keeper):
    key, text = make(records)
    real = keeper.scram(key.id)
    assert ScramVerifier.of(text, salt=real.salt) == real
    false = keeper.scram("nobody")
    assert (false.iterations, len(false.salt)) == (real.iterations, len(real.salt))
    with Records.open(location) as others:
        assert Doorkeeper(others).scram("nobody") == false  # in every worker the same
    with pytest.raises(Unauthenticated):
        keeper.login_by_id("nobody")


def test_a_revoked_key_looks_as_before_to_scram(records, keeper, clock):
    key, _ = make(records)
    before = keeper.scram(key.id)
    api_keys.revoke(records, key.id)
    clock.now += 1.0
    assert keeper.scram(key.id) == before


@pytest.mark.needs("postgres")
@pytest.mark.lengthy
def test_postgresql_and_libpq_take_the_verifier_for_their_own(records):
    key, text = make(records)
    with PostgresServer() as server:
        with psycopg.connect(server.url, autocommit=True) as owner:
            owner.execute(f"CREATE ROLE \"{key.id}\" LOGIN PASSWORD '{key.verifier}'")
        told = psycopg.conninfo.conninfo_to_dict(server.url) | {"user": key.id}
        psycopg.connect(**told | {"password": text}).close()
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            psycopg.connect(**told | {"password": text[:-1]})


@pytest.mark.parametrize(
    "who", ["", " ", "a:b", "a\nb", "*", " ana", "ana ", 129 * "x", "\ud800", 3]
)
def test_names_that_no_key_can_have(records, who):
    with pytest.raises(ParameterError, match="who must be"):
        make(records, who=who)
    assert api_keys.all_keys(records) == ()


@pytest.mark.parametrize("who", ["ana", "Ana María", "数据", 128 * "x", "dk_x", "a b@c.d/e"])
def test_names_that_the_ledger_takes_too(records, who):
    assert ledger_text(make(records, who=who)[0].who, name="who") == who


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"roles": []}, "roles"),
        ({"roles": "analyst"}, "roles"),
        ({"roles": ["king"]}, "roles"),
        ({"datasets": []}, "datasets"),
        ({"datasets": "visits"}, "datasets"),
        ({"datasets": [""]}, "datasets"),
        ({"expires": 1.0}, "expires"),
        ({"expires": float("nan")}, "expires"),
        ({"expires": float("inf")}, "expires"),
    ],
)
def test_keys_that_are_not_made(records, wrong, match):
    with pytest.raises(ParameterError, match=match):
        make(records, **wrong)


def test_a_role_of_a_later_version_gives_nothing(records, keeper):
    _, text = make(records)
    records.run("UPDATE api_keys SET roles = :roles", roles='["analyst", "wizard"]')
    assert keeper.login(text).roles == {Role.ANALYST}
