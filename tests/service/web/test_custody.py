"""What custodians do over HTTP: each act an entry of the ledger, and no way out of the folder."""

import pyarrow.parquet as pq
import pytest
from gateway_sites import COUNT, GRANT, KEY, people

from discreet.errors import ParameterError
from discreet.ledger import Ledger
from discreet.service import Records, Role, create

DECLARED = """
name = "{name}"
unit = "person"
rows = 1
[guarantee]
epsilon = 1
delta = 1e-6
[tables.{name}]
source = "{source}"
"""


def last(site):
    with Ledger.open(site.settings.ledger, read_only=True) as ledger:
        return ledger.history()[-1]


@pytest.mark.parametrize(
    ("method", "path", "body", "entry"),
    [
        ("POST", "/v1/datasets/people/grants", GRANT, {"kind": "grant", "reason": "board"}),
        ("POST", "/v1/datasets/people/limits", {"epsilon": 1, "analyst": "ana", "every": "month"},
         {"kind": "budget", "line": "analyst=ana,every=month"}),
        ("PUT", "/v1/datasets/people/policy", {"policy": "degrade", "reason": "board"},
         {"kind": "policy", "policy": "degrade"}),
        ("POST", "/v1/datasets/people/reopen", {"reason": "looked"},
         {"kind": "act", "act": "dataset.reopened", "subject": "people"}),
        ("POST", "/v1/keys", KEY, {"kind": "act", "act": "key.created"}),
    ],
)  # fmt: skip
def test_every_act_is_an_entry_that_names_who(client, site, method, path, body, entry):
    found = client.request(method, path, json=body, headers=site.header("chris"))
    assert found.status_code in (200, 201), found.text
    written = last(site)
    assert written["index"] == found.json()["entry"]
    assert written.items() >= {**entry, "who": "chris"}.items()


def test_a_key_is_made_used_and_ended(client, site):
    made = client.post("/v1/keys", json={**KEY, "days": 1}, headers=site.header("chris")).json()
    header = {"Authorization": f"Bearer {made['secret']}"}
    assert made["secret"] not in str(client.get("/v1/keys", headers=site.header("chris")).json())
    path = f"/v1/keys/{made['key']['id']}"
    assert client.delete(path, headers=site.header("chris")).status_code == 200
    assert last(site)["act"] == "key.revoked"
    assert client.delete(path, headers=site.header("chris")).status_code == 404
    assert client.get("/v1/me", headers=header).status_code in (200, 401)  # a second may pass


def test_the_policy_that_a_custodian_sets_is_what_happens(client, site):
    path = "/v1/datasets/people/policy"
    body = {"policy": "wait", "reason": "board"}
    found = client.put(path, json=body, headers=site.header("chris"))
    assert found.status_code == 422  # no period
    client.put(path, json={**body, "policy": "degrade"}, headers=site.header("chris"))
    shown = client.get("/v1/datasets/people", headers=site.header("ana")).json()
    assert shown["policy"] == "degrade"


def test_a_table_in_the_data_folder_can_be_registered_and_asked(client, site, caplog):
    pq.write_table(people(), site.folder / "data" / "more.parquet")
    body = {"declaration": DECLARED.format(name="more", source="more.parquet")}
    found = client.post("/v1/datasets", json=body, headers=site.header("chris"))
    assert found.status_code == 409  # a copy of what is protected already
    table = people(seed=9)
    table = table.set_column(0, "person", [[one + 10**6 for one in range(len(table))]])
    pq.write_table(table, site.folder / "data" / "more.parquet")
    found = client.post("/v1/datasets", json=body, headers=site.header("chris"))
    assert found.status_code == 201, found.text
    assert found.json()["name"] == "more"
    act = {"kind": "act", "act": "dataset.registered", "subject": "more", "account": "more"}
    assert last(site).items() >= {**act, "who": "chris"}.items()
    asked = {**COUNT, "question": "SELECT COUNT(*) AS n FROM more"}
    answer = client.post("/v1/datasets/more/query", json=asked, headers=site.header("ana"))
    assert answer.status_code == 200
    again = client.post("/v1/datasets", json=body, headers=site.header("chris"))
    assert again.status_code == 422
    with site.served() as another:  # another worker, or the same one tomorrow
        listed = another.get("/v1/datasets", headers=site.header("ana")).json()["datasets"]
    assert listed == ["more", "others", "people"]
    (site.folder / "data" / "more.parquet").unlink()
    with site.served() as another:
        listed = another.get("/v1/datasets", headers=site.header("ana")).json()["datasets"]
    assert listed == ["others", "people"]
    assert "data folder" in caplog.text  # for the custodian, who finds what is missing


@pytest.mark.parametrize(
    "source",
    ["../budget.db", "/etc/passwd", "", ".", "data/../../x.parquet", "https://x/y.parquet",
     "s3://x/y.parquet", "postgresql://x/y", "link.parquet", "l*.parquet", "**/*.parquet", "sub",
     "sub/link.parquet", "~/x.parquet", "none.parquet", "a\\u0000b.parquet", 5000 * "x"],
)  # fmt: skip
def test_nothing_outside_the_data_folder_can_be_registered(client, site, source):
    pq.write_table(people(seed=3), site.folder / "secret.parquet")
    (site.folder / "data" / "sub").mkdir()
    for link in ("link.parquet", "sub/link.parquet"):
        (site.folder / "data" / link).symlink_to(site.folder / "secret.parquet")
    body = {"declaration": DECLARED.format(name="more", source=source)}
    found = client.post("/v1/datasets", json=body, headers=site.header("chris"))
    assert found.status_code == 422, found.text
    assert "/" not in found.json()["detail"].replace("://", "")


@pytest.mark.parametrize(
    "wrong",
    [('"person"', '"nobody"'), ('"more.parquet"', '"broken.parquet"'),
     ("[guarantee]", "[tables.more.columns.wages]\nbounds = [0, 9]\n[guarantee]")],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_its_file_is_the_request_to_be_mended(client, site, wrong):
    pq.write_table(people(seed=3), site.folder / "data" / "more.parquet")
    (site.folder / "data" / "broken.parquet").write_bytes(b"PAR1 or not")
    text = DECLARED.format(name="more", source="more.parquet").replace(*wrong)
    found = client.post("/v1/datasets", json={"declaration": text}, headers=site.header("chris"))
    assert found.status_code == 422, found.text
    assert found.json()["errors"][0]["where"] == "declaration"
    assert "Nothing was registered" in found.json()["detail"]
    assert str(site.folder) not in found.text
    assert client.get("/v1/datasets/more", headers=site.header("chris")).status_code == 404


def test_a_declaration_cannot_bring_a_ledger_of_its_own(client, site):
    text = 'ledger = "other.db"\n' + DECLARED.format(name="more", source="people.parquet")
    found = client.post("/v1/datasets", json={"declaration": text}, headers=site.header("chris"))
    assert found.status_code == 422
    assert "one ledger" in found.json()["detail"]


@pytest.mark.parametrize("expires", [1e300, 300_000_000_000.0])
def test_a_key_ends_at_a_time_that_can_be_told(client, site, expires):
    with Records.open(site.settings.records_location) as records:
        with pytest.raises(ParameterError, match="before the year 9999"):
            create(records, who="ana", roles=[Role.ANALYST], expires=expires)
        create(records, who="ana", roles=[Role.ANALYST], expires=253_000_000_000.0)
    listed = client.get("/v1/keys", headers=site.header("chris")).json()["keys"]
    assert "9987-04-02T17:46:40+00:00" in [one["expires"] for one in listed]
