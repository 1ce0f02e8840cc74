"""The protocol message by message: what comes when, what it costs, what errors leave behind."""

import socket
import struct

import pytest
from wire_gateway import KEY, TOKEN, RawClient, SmallDesk, errors_in, fields_of, framed, startup

from wire_gateway import running_wire  # isort: skip

SYNC, FLUSH = framed(b"S"), framed(b"H")


def parse(text, name="", types=()):
    listed = struct.pack(f"!H{len(types)}I", len(types), *types)
    return framed(b"P", f"{name}\0{text}\0".encode() + listed)


def bind(values=(), *, portal="", name="", formats=(), results=()):
    parts = [
        f"{portal}\0{name}\0".encode(),
        struct.pack(f"!H{len(formats)}H", len(formats), *formats),
    ]
    parts.append(struct.pack("!H", len(values)))
    for value in values:
        size = -1 if value is None else len(value)
        parts.append(struct.pack("!i", size) + (value or b""))
    parts.append(struct.pack(f"!H{len(results)}H", len(results), *results))
    return framed(b"B", b"".join(parts))


def describe(kind="P", name=""):
    return framed(b"D", f"{kind}{name}\0".encode())


def execute(portal="", most=0):
    return framed(b"E", f"{portal}\0".encode() + struct.pack("!i", most))


def close(kind, name):
    return framed(b"C", f"{kind}{name}\0".encode())


def kinds(messages):
    return b"".join(kind for kind, _ in messages).decode()


def spent(wire):
    return wire.desk.datasets["people"].remaining, len(wire.desk.asked)


def test_a_session_begins_with_all_that_drivers_need(wire):
    with RawClient(wire, begin=False) as client:
        client.send(startup(user="token", database="people"))
        assert client.read() == (b"R", b"\0\0\0\3")
        found = client.send(framed(b"p", f"{TOKEN}\0".encode())).until(b"Z")
    assert found[0] == (b"R", b"\0\0\0\0")
    told = dict(body.decode().split("\0")[:2] for kind, body in found if kind == b"S")
    assert told["server_version"].startswith("16.0 (discreet ")
    assert (told["client_encoding"], told["integer_datetimes"]) == ("UTF8", "on")
    assert (told["standard_conforming_strings"], told["TimeZone"]) == ("on", "UTC")
    assert kinds(found)[-2:] == "KZ"
    assert found[-1][1] == b"I"


def test_newer_versions_are_answered_with_ours(wire):
    body = (3 << 16 | 2).to_bytes(4, "big") + b"user\0token\0database\0people\0_pq_.new\0on\0\0"
    with RawClient(wire, begin=False) as client:
        client.send(framed(b"", body))
        assert client.read() == (b"v", b"\0\3\0\0" + b"\0\0\0\1" + b"_pq_.new\0")
        assert client.read()[0] == b"R"
    with RawClient(wire, begin=False) as client:
        client.send(framed(b"", (4 << 16).to_bytes(4, "big") + b"\0"))
        (failure,) = errors_in(client.rest())
        assert (failure["S"], failure["C"]) == ("FATAL", "0A000")


def test_encryption_is_declined_where_there_is_none(wire):
    with RawClient(wire, begin=False) as client:
        for code in (80877104, 80877103):
            client.send(framed(b"", code.to_bytes(4, "big")))
            assert client.exactly(1) == b"N"
        client.send(startup(user=KEY, database="people"))
        kind, body = client.read()
    assert (kind, body) == (b"R", b"\0\0\0\x0aSCRAM-SHA-256\0\0")


def test_several_statements_in_one_query(raw):
    found = raw.query("SELECT 1; BEGIN; SHOW TimeZone;")
    assert kinds(found) == "TDCCTDCZ"
    assert found[-1][1] == b"T"
    assert kinds(raw.query("SELECT nosuch(1); SELECT 1")) == "EZ"
    assert kinds(raw.query("ROLLBACK")) == "CZ"
    assert kinds(raw.query(" ; ")) == "IZ"


def test_describing_and_preparing_cost_nothing(wire, raw):
    before = spent(wire)
    question = "SELECT sex, COUNT(*) AS n FROM people WHERE sex = $1 GROUP BY sex LIMIT $2"
    found = raw.send(parse(question, "p"), describe("S", "p"), SYNC).until(b"Z")
    assert kinds(found) == "1tTZ"
    assert found[1][1] == struct.pack("!HII", 2, 25, 20)
    assert b"sex\0" in found[2][1]
    assert b"n\0" in found[2][1]
    found = raw.send(bind([b"male", b"1"], name="p"), describe(), close("S", "p"), SYNC).until(b"Z")
    assert kinds(found) == "2T3Z"
    assert kinds(raw.send(parse("SELECT * FROM people"), describe("S"), SYNC).until(b"Z")) == "1tEZ"
    assert spent(wire) == before


@pytest.mark.parametrize(
    ("question", "types"),
    [
        ("SELECT QUANTILE(income, $1) FROM people", [701]),
        ("SELECT SUM(CLAMP(income, $1,$2)) FROM people", [20, 20]),
        ("SELECT COUNT(*) FROM people WHERE region IN ($1,$2)", []),
        ("EXPLAIN SELECT COUNT(*) FROM people WHERE age > $1::int", []),
        ("EXPLAIN SELECT COUNT(*) FROM people WHERE region IN ($1,$2)", []),
    ],
)
def test_questions_are_described_before_their_values_are_known(raw, question, types):
    found = raw.send(parse(question, "p", types), describe("S", "p"), close("S", "p"), SYNC)
    assert kinds(found.until(b"Z")) == "1tT3Z"


def test_the_types_of_parameters_are_found_below_explain(raw):
    text = "EXPLAIN SELECT COUNT(*) FROM people WHERE age > $1::int"
    found = raw.send(parse(text), describe("S"), SYNC).until(b"Z")
    assert found[1][1] == struct.pack("!HI", 1, 23)


@pytest.mark.parametrize("before", ["", "SELECT 1; "])
def test_errors_below_explain_have_their_place_in_the_whole_text(raw, before):
    raw.query("SET discreet.epsilon = 0.1")
    text = f"{before}EXPLAIN (COSTS OFF) SELECT * FROM people"
    (failure,) = errors_in(raw.query(text))
    assert text[int(failure["P"]) - 1] == "*"


def test_an_answer_without_a_way_to_pay_is_refused_at_execution(wire, raw):
    before = spent(wire)
    found = raw.send(parse("SELECT COUNT(*) FROM people"), bind(), execute(), SYNC).until(b"Z")
    assert kinds(found) == "12EZ"
    assert errors_in(found)[0]["H"].startswith("SET discreet.epsilon")
    assert spent(wire) == before


def test_columns_that_changed_are_told_before_anything_is_paid(wire, raw):
    question = "SELECT COUNT(*) AS n FROM people WHERE age > 77"
    raw.query("SET discreet.epsilon = 0.1")
    assert kinds(raw.send(parse(question, "p"), describe("S", "p"), SYNC).until(b"Z")) == "1tTZ"
    raw.query("SET discreet.errors = on")
    before = spent(wire)
    found = raw.send(bind(name="p"), execute(), SYNC).until(b"Z")
    assert errors_in(found)[0]["M"] == "cached plan must not change result type"
    assert spent(wire) == before
    raw.query("SET discreet.errors = off")
    found = raw.send(bind(name="p", results=[1]), execute(), SYNC).until(b"Z")
    assert kinds(found) == "2DNCZ"
    assert len(found[1][1]) == 2 + 4 + 8  # one double, in binary
    assert spent(wire)[1] == before[1] + 1


def test_after_an_error_everything_is_skipped_until_sync(raw):
    found = raw.send(
        parse("SELECT nosuch(1)"), bind(), describe(), execute(), parse("SELECT 1"), bind(),
        execute(), SYNC, parse("SELECT 1"), bind(), execute(), SYNC,
    ).until(b"Z")  # fmt: skip
    assert kinds(found) == "12EZ"
    assert kinds(raw.until(b"Z")) == "12DCZ"


def test_flush_sends_what_there_is(raw):
    assert kinds(raw.send(parse("SELECT 1"), FLUSH).until(b"1")) == "1"
    assert kinds(raw.send(bind(), execute(), SYNC).until(b"Z")) == "2DCZ"


def test_rows_can_be_fetched_in_parts(raw):
    text = "SELECT n FROM generate_series(1, 5) AS t(n)"
    raw.query("BEGIN")
    found = raw.send(parse(text), bind(portal="c"), describe("P", "c"), execute("c", 2), SYNC)
    assert kinds(found.until(b"Z")) == "12TDDsZ"
    assert kinds(raw.send(execute("c", 2), SYNC).until(b"Z")) == "DDsZ"
    found = raw.send(execute("c", 2), SYNC).until(b"Z")
    assert (kinds(found), found[1][1]) == ("DCZ", b"SELECT 1\0")
    raw.query("COMMIT")
    found = raw.send(execute("c"), SYNC).until(b"Z")
    assert errors_in(found)[0]["C"] == "34000"  # it ended with its transaction


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([bind(name="none")], "26000"), ([execute("none")], "34000"),
        ([describe("S", "none")], "26000"), ([parse("SELECT $1"), bind()], "08P01"),
        ([parse("SELECT 1"), bind([b"1"])], "08P01"), ([parse("SELECT 1; SELECT 2")], "42601"),
        ([parse("SELECT 1"), bind(results=[1, 1, 1]), execute()], "08P01"),
        ([parse("SELECT $1"), bind([b"x"], formats=[1, 1])], "08P01"),
        ([parse("SELECT $1::int"), bind([b"x"])], "22P02"), ([parse("SELECT $99999999")], "42601"),
        ([parse("SELECT 1", "p"), parse("SELECT 1", "p")], "42P05"),
        ([parse("SELECT 1"), bind(portal="c"), bind(portal="c")], "42P03"),
        ([parse("x" * 100_001)], "54000"), ([parse("SELECT $2001")], "54000"),
    ],
)  # fmt: skip
def test_mistakes_in_the_extended_protocol_are_errors_of_their_own(raw, messages, code):
    found = raw.send(*messages, SYNC).until(b"Z")
    assert [one["C"] for one in errors_in(found)] == [code]
    assert kinds(raw.query("SELECT 1")) == "TDCZ"


def test_statements_and_portals_are_bounded(wire):
    with (
        running_wire(wire.desk, prepared_statements=3, portals=2) as small,
        RawClient(small) as raw,
    ):
        for number in range(3):
            assert kinds(raw.send(parse("SELECT 1", f"p{number}"), SYNC).until(b"Z")) == "1Z"
        found = raw.send(parse("SELECT 1", "more"), SYNC).until(b"Z")
        assert errors_in(found)[0]["H"] == "DEALLOCATE ALL lets go of them."
        raw.query("DEALLOCATE p0")
        found = raw.send(parse("SELECT 1"), *(bind(portal=f"c{n}") for n in range(3)), SYNC)
        assert errors_in(found.until(b"Z"))[0]["C"] == "53400"
        assert kinds(raw.query("DEALLOCATE ALL")) == "CZ"


def test_binary_values_of_all_types(raw):
    text = "SELECT true, 7::int, 7::bigint, 1.5::float8, 'x', DATE '2000-01-02'"
    found = raw.send(parse(text), bind(results=[1]), execute(), SYNC).until(b"Z")
    values, at = [], 2
    (_, row) = found[2]
    while at < len(row):
        size = struct.unpack_from("!i", row, at)[0]
        values.append(row[at + 4 : at + 4 + size])
        at += 4 + size
    assert values == [
        b"\1", b"\0\0\0\7", b"\0" * 7 + b"\7", struct.pack("!d", 1.5), b"x", b"\0\0\0\1",
    ]  # fmt: skip


def test_settings_that_clients_keep_track_of_are_told(raw):
    found = raw.query("SET application_name = 'tool'")
    assert found[0] == (b"S", b"application_name\0tool\0")
    assert (b"S", b"TimeZone\0Europe/Paris\0") in raw.query("SET TIME ZONE 'Europe/Paris'")
    assert (b"S", b"TimeZone\0UTC\0") in raw.query("DISCARD ALL")


def test_chatter_has_the_right_tags(raw):
    tags = {
        "BEGIN": "BEGIN", "SAVEPOINT a": "SAVEPOINT", "ROLLBACK TO SAVEPOINT a": "ROLLBACK",
        "RELEASE a": "RELEASE", "END": "COMMIT", "START TRANSACTION READ ONLY": "START TRANSACTION",
        "ABORT": "ROLLBACK", "UNLISTEN *": "UNLISTEN", "CLOSE ALL": "CLOSE CURSOR ALL",
        "RESET ALL": "RESET", "DISCARD ALL": "DISCARD ALL", "SET NAMES 'UTF8'": "SET",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY": "SET", "DEALLOCATE ALL":
        "DEALLOCATE ALL", "SET extra_float_digits TO 3": "SET", "SHOW ALL": "SHOW",
    }  # fmt: skip
    for text, tag in tags.items():
        found = raw.query(text)
        assert (b"C", f"{tag}\0".encode()) in found, (text, found)


@pytest.mark.parametrize(
    "text",
    ["SET", "SET x", "SET x =", "SET = 1", "SHOW", "RESET", "SAVEPOINT a", "RELEASE a",
     "ROLLBACK TO a", "DEALLOCATE nothing", "EXPLAIN", "START", "CLOSE x", "PREPARE p AS SELECT 1",
     "EXECUTE p", "DECLARE c CURSOR FOR SELECT 1", "LISTEN x", "COMMIT PREPARED 'x'", "SHOW a b",
     "nonsense", "SET discreet. = 1", "SET a.b.c.d = 1 2 3 !", "DEALLOCATE", "DISCARD"],
)  # fmt: skip
def test_statements_that_are_not_whole_do_no_harm(raw, text):
    found = raw.query(text)
    assert kinds(found) in ("EZ", "CZ")
    assert all(one["C"] != "XX000" for one in errors_in(found))
    assert kinds(raw.query("SELECT 1")) == "TDCZ"


def test_set_local_outside_a_transaction_is_warned_about(raw):
    found = raw.query("SET LOCAL discreet.epsilon = 1")
    assert fields_of(found[0][1])["S"] == "WARNING"
    assert raw.query("SHOW discreet.epsilon")[1][1] == b"\0\1\0\0\0\0"


class BrokenDesk(SmallDesk):
    """Makes mistakes whose words nobody may read."""

    async def columns(self, *_, **__):
        raise ValueError("alice earns 7")

    def tables(self, *_):
        raise KeyError("alice")


def test_mistakes_of_ours_are_told_in_one_fixed_text_and_end_nothing(wire, caplog):
    with running_wire(BrokenDesk(wire.desk.datasets)) as broken, RawClient(broken) as raw:
        for text in ("SELECT COUNT(*) FROM people", "SELECT * FROM pg_class"):
            found = raw.query(text)
            assert errors_in(found)[0]["C"] == "XX000"
            assert "alice" not in repr(found)
        assert kinds(raw.query("SHOW TimeZone")) == "TDCZ"
    assert "alice" not in caplog.text
    assert "ValueError at " in caplog.text


def test_many_questions_are_read_before_they_are_answered(raw):
    raw.send(*(framed(b"Q", b"SELECT 1\0") for _ in range(50)))
    assert [kinds(raw.until(b"Z")) for _ in range(50)] == ["TDCZ"] * 50


def test_a_client_may_leave_at_any_time(wire):
    packets = [startup(user="token", database="people"), framed(b"p", f"{TOKEN}\0".encode()),
               framed(b"Q", b"SELECT 1\0")]  # fmt: skip
    whole = b"".join(packets)
    for size in range(0, len(whole), 7):
        with socket.create_connection(("127.0.0.1", wire.port)) as client:
            client.sendall(whole[:size])
    with RawClient(wire) as raw:
        assert kinds(raw.query("SELECT 1")) == "TDCZ"


def test_a_portal_that_is_run_to_its_end_gives_no_rows_again_and_keeps_none(wire, raw):
    raw.query("SET discreet.epsilon = 0.1")
    raw.query("BEGIN")
    text = "SELECT sex, COUNT(*) AS n FROM people WHERE age > 66 GROUP BY sex"
    found = raw.send(parse(text), bind(portal="c"), execute("c", 1), execute("c", 1), SYNC)
    assert kinds(found.until(b"Z")) == "12DsDNCZ"
    asked = len(wire.desk.asked)
    found = raw.send(execute("c"), SYNC).until(b"Z")
    assert (kinds(found), found[0][1]) == ("CZ", b"SELECT 0\0")
    assert len(wire.desk.asked) == asked


def test_rows_that_are_yet_to_be_fetched_are_bounded(wire):
    text = "SELECT x.n FROM generate_series(1, 1000) AS x(n)"
    with running_wire(wire.desk, portal_bytes=100_000) as small, RawClient(small) as raw:
        raw.query("BEGIN")
        for name, ends in (("a", "12sZ"), ("b", "12EZ")):
            found = raw.send(parse(text), bind(portal=name), execute(name, 1), SYNC).until(b"Z")
            assert kinds(found).replace("D", "") == ends
        assert errors_in(found)[0]["C"] == "53400"


def test_everything_but_sync_is_skipped_after_an_error_also_a_query(raw):
    """A setting that was refused must not be followed by a question at the price before it."""
    query = framed(b"Q", b"SELECT 2\0")
    found = raw.send(parse("SELECT nosuch(1)"), bind(), execute(), query, SYNC).until(b"Z")
    assert kinds(found) == "12EZ"
    assert kinds(raw.query("SELECT 1")) == "TDCZ"
