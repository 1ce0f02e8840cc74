"""Sessions of the explorer: apart from each other and from the gateway's ledger, few, and swept."""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gateway_sites import make_site
from page_sites import FORM_KEY, GUARD

from discreet.errors import TryLater
from discreet.ledger import Ledger
from discreet.service import Gateway
from discreet.service.pages.areas.explorer.company import people
from discreet.service.pages.areas.explorer.folders import VisitorFolders
from discreet.service.pages.areas.explorer.truth import exact_rows
from discreet.service.pages.areas.explorer.visits import Visits

QUESTION = "SELECT COUNT(*) AS n FROM salaries WHERE years > 3"


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def folders(tmp_path, clock):
    return VisitorFolders(tmp_path / "sessions", most=3, idle=100, spare=10, clock=clock)


def kept(tmp_path):
    return sorted(one.name for one in (tmp_path / "sessions").iterdir())


def test_names_of_visitors_are_not_on_disk(folders, tmp_path):
    folders.make("the secret name of a browser")
    assert all("secret" not in str(one) for one in tmp_path.rglob("*"))


def test_what_nobody_uses_is_swept_away(folders, tmp_path, clock):
    folders.make("old")
    clock.now += 60
    folders.make("young")
    clock.now += 60
    folders.make("new")
    assert len(kept(tmp_path)) == 2
    assert folders.find("old") is None
    assert folders.find("young") is not None


def test_looking_keeps_a_session(folders, clock):
    folders.make("regular")
    for _ in range(5):
        clock.now += 60
        assert folders.find("regular") is not None
        folders.sweep()


def test_there_are_never_more_than_so_many(folders, tmp_path, clock):
    for number in range(3):
        folders.make(f"visitor {number}")
        clock.now += 1
    with pytest.raises(TryLater, match="taken"):
        folders.make("one too many")
    clock.now += 9  # the first one was not used for more than `spare` seconds now
    folders.make("one too many")
    assert len(kept(tmp_path)) == 3
    assert folders.find("visitor 0") is None


def test_half_made_and_half_removed_sessions_are_swept_too(folders, tmp_path, clock):
    folders.make("somebody")
    for name in (".new-0123", ".gone-4567"):
        (tmp_path / "sessions" / name).mkdir()
        os.utime(tmp_path / "sessions" / name, (clock.now, clock.now))
    clock.now += 101
    folders.sweep()
    assert kept(tmp_path) == []


def test_workers_that_make_the_same_session_at_once_make_one(tmp_path):
    several = [VisitorFolders(tmp_path / "sessions") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda folders: folders.make("one"), several))
    assert len(set(made)) == 1
    assert len(kept(tmp_path)) == 1


def test_a_removed_session_takes_its_anchor_along(tmp_path, monkeypatch):
    """Where anchors have a folder of their own, visitors must not fill that one either."""
    anchors = tmp_path / "anchors"
    anchors.mkdir()
    monkeypatch.setenv("DISCREET_LEDGER_ANCHORS", str(anchors))
    site = make_site(tmp_path, explorer=True)
    before = sorted(anchors.iterdir())

    async def visit():
        visits = Visits(Gateway.open(site.settings))
        await visits.change("visitor", lambda visit: visit.tables.sql(QUESTION, epsilon=1))
        assert len(list(anchors.iterdir())) > len(before)
        await visits.start_over("visitor")

    asyncio.run(visit())
    assert sorted(anchors.iterdir()) == before


@pytest.fixture
def shop(tmp_path):
    return make_site(tmp_path, explorer=True)


def ask(client, question=QUESTION, epsilon="0.5", **form):
    page = client.get("/explorer").text
    told = {
        "guard": GUARD.search(page)[1], "key": FORM_KEY.search(page)[1],
        "question": question, "epsilon": epsilon, **form,
    }  # fmt: skip
    return client.post(
        "/explorer/ask", data=told, headers={"Origin": "http://testserver"}, follow_redirects=False
    )


def test_looking_makes_no_session(shop):
    with shop.served() as client:
        for _ in range(5):
            client.cookies.clear()
            assert client.get("/explorer").status_code == 200
    folder = shop.settings.shared_folder("explorer")
    assert len(list(folder.iterdir())) == 1  # the untouched one, which all strangers look at


def test_the_gateways_own_ledger_never_hears_of_it(shop):
    with Ledger.open(shop.settings.ledger) as ledger:
        before = ledger.size
    with shop.served() as client:
        assert ask(client).status_code == 303
        assert len(client.get("/explorer.json").json()["answers"]) == 1
    with Ledger.open(shop.settings.ledger) as ledger:
        assert ledger.size == before
        assert "salaries" not in [account.name for account in ledger]


def test_a_session_is_in_a_ledger_that_can_be_verified(shop):
    with shop.served() as client:
        ask(client)
    folder = shop.settings.shared_folder("explorer")
    ledgers = [one for one in folder.glob("*/budget.db") if Ledger.open(one).size > 2]
    (place,) = ledgers
    with Ledger.open(place, key=f"{place}.key", create=False) as ledger:
        assert "entries verified" in str(ledger.verify())
        (account,) = ledger
        assert 0.09 < account.used < 0.11


def test_the_key_of_the_gateways_ledger_signs_no_visits(shop, monkeypatch, tmp_path):
    monkeypatch.setenv("DISCREET_LEDGER_KEY", str(tmp_path / "budget.db.key"))
    with shop.served() as client:
        assert ask(client).status_code == 303
    real = (tmp_path / "budget.db.key").read_bytes()
    keys = list(shop.settings.shared_folder("explorer").glob("*/budget.db.key"))
    assert keys
    assert all(one.read_bytes() != real for one in keys)


def test_the_same_form_sent_twice_is_paid_once(shop):
    with shop.served() as client:
        for question in (QUESTION, QUESTION.replace("3", "4")):
            ask(client, question, key="pressed twice")
        assert len(client.get("/explorer.json").json()["answers"]) == 1


def test_several_workers_serve_one_visitor(shop):
    with shop.served() as one, shop.served() as other:
        ask(one)
        other.cookies = one.cookies
        assert len(other.get("/explorer.json").json()["answers"]) == 1
        ask(other, QUESTION.replace("3", "4"))
        assert len(one.get("/explorer.json").json()["answers"]) == 2


def test_a_forged_form_spends_nothing(shop):
    with shop.served() as client:
        client.get("/explorer")
        found = client.post(
            "/explorer/ask",
            data={"guard": "0" * 64, "question": QUESTION, "epsilon": "1"},
            headers={"Origin": "http://testserver", "Accept": "text/html"},
        )
        assert found.status_code == 403
        assert client.get("/explorer.json").json()["has_begun"] is False


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"question": "SELECT 1 FROM salaries " + " " * 600 + "x"}, "characters"),
        ({"question": "SELECT COUNT(*) FROM people"}, "people"),
        ({"question": "SELECT COUNT(*) FROM 'data/people.parquet'"}, ""),
        ({"epsilon": "0.001"}, "epsilon"),
        ({"epsilon": "6"}, "epsilon"),
        ({"epsilon": "nan"}, "epsilon"),
    ],
)
def test_what_is_too_long_or_about_other_tables_is_refused(shop, query, word):
    with shop.served() as client:
        found = client.get("/explorer.json", params=query).json()
        assert found["quote"] is None
        assert word in json.dumps(found["problem"])


def test_a_session_does_not_grow_for_ever(shop, monkeypatch):
    monkeypatch.setattr("discreet.service.pages.areas.explorer.actions._MOST_ENTRIES", 5)
    with shop.served() as client:
        ask(client)
        ask(client, QUESTION.replace("3", "4"))
        found = ask(client, QUESTION.replace("3", "5"))
        assert found.status_code == 429
        assert len(client.get("/explorer.json").json()["answers"]) == 2


def test_without_the_setting_there_is_nothing(tmp_path):
    with make_site(tmp_path).served() as client:
        for path in ("/explorer", "/explorer.json", "/training", "/training/steps"):
            assert client.get(path).status_code == 404
        assert "Explorer" not in client.get("/").text


def test_too_many_visitors_at_once_are_told(shop, monkeypatch):
    monkeypatch.setattr("discreet.service.pages.areas.explorer.visits._WAITING", 0)
    with shop.served() as client:
        assert client.get("/explorer.json").status_code == 429


def test_the_truth_comes_from_a_database_that_reaches_nothing(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    questions = [
        f"SELECT * FROM '{secret}'",
        f"COPY salaries TO '{tmp_path / 'out.csv'}'",
        "SET enable_external_access = true",
        "SELECT COUNT(*) FROM range(100000000000) a, range(100) b",
        "SELECT COUNT(*) FROM salaries",
    ]
    assert exact_rows(3, questions) == [None, None, None, None, [(100,)]]
    assert not (tmp_path / "out.csv").exists()


def test_other_seeds_are_other_people():
    assert people(1)["salary"].tolist() != people(2)["salary"].tolist()


def test_folders_of_a_postgres_gateway_are_in_nobodys_name(tmp_path):
    from discreet.service import GatewaySettings

    settings = GatewaySettings(ledger="postgresql://ana:password@host/db")
    place = settings.shared_folder("explorer")
    assert "password" not in str(place)
    assert isinstance(place, Path)
