"""Every planted leak is found, and its correct twin passes.

Each scan of a twin fails with probability at most 1e-9; all tests of this file together with less
than 1e-7.
"""

import base64
import gzip
import hashlib
import hmac
import json
import logging
import math
import os
import secrets
import sqlite3
import struct
import sys
import tempfile
import threading
import warnings
import zipfile
import zlib
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from discreet import audit
from discreet.errors import DataError, ParameterError

SALT = secrets.token_bytes(32)


def noisy(value, scale=1e6):
    """A stand-in for a private answer: numpy's noise is good enough where nobody is protected."""
    return float(value + np.random.default_rng().laplace(scale=scale))


def total(planted):
    return math.fsum(planted.table["salary"])


def fail(error):
    raise error


def chained(planted):
    try:
        try:
            raise KeyError(planted.table["email"][2])
        except KeyError:
            raise LookupError("no such person") from None
    except LookupError as error:
        error.add_note("while looking up a person")
        raise


def noted(planted):
    error = ValueError("a value is out of bounds")
    error.add_note(f"row {planted.table['name'][7]}")
    raise error


def logged(text, *args, name="shop.queries", level=logging.DEBUG, **facts):
    logging.getLogger(name).log(level, text, *args, **facts)


def written(name, content):
    with tempfile.NamedTemporaryFile(prefix=name, delete=False) as file:
        file.write(content)


def left(name, content, *, keep):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(content)
    if keep:
        written(name, content)


def cached(rows):
    folder = tempfile.mkdtemp()
    with closing(sqlite3.connect(Path(folder, "cache.db"))) as database:
        database.execute("PRAGMA page_size = 512")
        database.execute("CREATE TABLE answers (question TEXT, value)")
        database.executemany("INSERT INTO answers VALUES (?, ?)", rows)
        database.commit()


def zipped(content):
    folder = tempfile.mkdtemp()
    with zipfile.ZipFile(Path(folder, "export.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("answers.csv", content)


def packed(text):
    return base64.b64encode(gzip.compress(text.encode())).decode()


def warned(text):
    warnings.warn(text, stacklevel=1)


def by_city(planted, *, least):
    cities = planted.table["city"]
    return {city: noisy(cities.count(city)) for city in set(cities) if cities.count(city) >= least}


def key(planted, **facts):
    return json.dumps({name: planted.table[column][4] for name, column in facts.items()})


# What leaks, and the same done right.
LEAKS = {
    "debug log of a raw aggregate": (
        lambda p: logged("exact sum %s", total(p)),
        lambda p: logged("released sum %s", noisy(total(p))),
    ),
    "argument of a log record that is not shown": (
        lambda p: logged("released", extra={"truth": total(p) / p.rows}),
        lambda p: logged("released", extra={"released": noisy(total(p) / p.rows)}),
    ),
    "log of a logger that passes nothing on": (
        lambda p: logged(p.table["name"][1], name="silent"),
        lambda p: logged("asked", name="silent"),
    ),
    "exception with a value": (
        lambda p: fail(ValueError(f"could not parse {p.table['email'][3]!r}")),
        lambda p: fail(ValueError("could not parse column 'email'")),
    ),
    "hidden context of an exception": (chained, lambda p: fail(LookupError("no such person"))),
    "note of an exception": (noted, lambda p: fail(ValueError("a value is out of bounds"))),
    "attribute of an exception": (
        lambda p: fail(OSError(2, "not found", p.table["name"][0])),
        lambda p: fail(OSError(2, "not found", "people.csv")),
    ),
    "key without a threshold": (
        lambda p: by_city(p, least=1),
        lambda p: by_city(p, least=20),
    ),
    "hash of an email without salt": (
        lambda p: hashlib.sha256(p.table["email"][5].encode()).hexdigest(),
        lambda p: hmac.new(SALT, p.table["email"][5].encode(), "sha256").hexdigest(),
    ),
    "shortened digest in capitals": (
        lambda p: "user-" + hashlib.md5(p.table["name"][5].encode()).hexdigest()[:16].upper(),
        lambda p: "user-" + secrets.token_hex(8).upper(),
    ),
    "two digests of 12 digits": (
        lambda p: [hashlib.md5(one.encode()).hexdigest()[:12] for one in p.table["email"][:2]],
        lambda p: [secrets.token_hex(6) for _ in range(2)],
    ),
    "digest in base64": (
        lambda p: base64.b64encode(hashlib.sha1(p.table["name"][5].encode()).digest()).decode(),
        lambda p: base64.b64encode(secrets.token_bytes(20)).decode(),
    ),
    "label of a metric": (
        lambda p: f'queries_total{{city="{p.table["city"][1]}"}} 3',
        lambda p: 'queries_total{table="people"} 3',
    ),
    "temporary file left behind": (
        lambda p: left("spill", p.table["name"][9].encode(), keep=True),
        lambda p: left("spill", p.table["name"][9].encode(), keep=False),
    ),
    "name of a file": (
        lambda p: written(p.table["name"][9], b""),
        lambda p: written("spill", b""),
    ),
    "body in gzip": (
        lambda p: gzip.compress(f"max {p.table['salary'][0]}".encode()),
        lambda p: gzip.compress(f"max {noisy(p.table['salary'][0])}".encode()),
    ),
    "deflated and cut": (
        lambda p: zlib.compress((p.table["name"][0] + secrets.token_hex(99)).encode())[:-20],
        lambda p: zlib.compress(secrets.token_hex(99).encode())[:-20],
    ),
    "token in base64, glued to a prefix": (
        lambda p: "tok_" + base64.urlsafe_b64encode(key(p, a="team", b="email").encode()).decode(),
        lambda p: "tok_" + base64.urlsafe_b64encode(key(p, a="team").encode()).decode(),
    ),
    "gzip in base64 in JSON": (
        lambda p: json.dumps({"page": packed(p.table["name"][8])}),
        lambda p: json.dumps({"page": packed("more")}),
    ),
    "percent encoding": (
        lambda p: "/next?after=" + "".join(f"%{ord(c):02X}" for c in p.table["name"][8]),
        lambda p: "/next?after=" + quote("page 8"),
    ),
    "escapes of JSON": (
        lambda p: "".join(f"\\u{ord(c):04x}" for c in p.table["name"][8]),
        lambda p: "".join(f"\\u{ord(c):04x}" for c in "page 8"),
    ),
    "entities of HTML": (
        lambda p: "".join(f"&#{ord(c)};" for c in p.table["name"][8]),
        lambda p: "".join(f"&#{ord(c)};" for c in "page 8"),
    ),
    "UTF-16": (
        lambda p: p.table["name"][8].encode("utf-16"),
        lambda p: "page 8".encode("utf-16"),
    ),
    "capitals and half a name": (
        lambda p: p.table["name"][8][:14].upper() + "...",
        lambda p: "people"[:3].upper() + "...",
    ),
    "rounded salaries": (
        lambda p: " ".join(f"{one:,.0f}" for one in p.table["salary"][:12]),
        lambda p: " ".join(f"{noisy(one):,.0f}" for one in p.table["salary"][:12]),
    ),
    "salaries in thousands": (
        lambda p: " ".join(f"{one / 1e3:.2f}k" for one in p.table["salary"][:30]),
        lambda p: " ".join(f"{noisy(one) / 1e3:.2f}k" for one in p.table["salary"][:30]),
    ),
    "sum in scientific notation and cents": (
        lambda p: f"{100 * total(p):.14e}",
        lambda p: f"{100 * noisy(total(p)):.14e}",
    ),
    "dates of birth": (
        lambda p: [day.strftime("%d/%m/%Y") for day in p.table["born"][:10]],
        lambda p: ["01/01/1970"] * 10,
    ),
    "identifier with separators": (
        lambda p: f"{p.table['person_id'][3]:_}",
        lambda p: f"{secrets.randbelow(10**18):_}",
    ),
    "float in raw bytes of a file": (
        lambda p: written("column", struct.pack(">3d", 1.5, p.table["salary"][3], 2.5)),
        lambda p: written("column", struct.pack(">3d", 1.5, noisy(p.table["salary"][3]), 2.5)),
    ),
    "half precision of many": (
        lambda p: np.asarray(p.table["salary"][:30], dtype=np.float32),
        lambda p: np.asarray([noisy(one) for one in p.table["salary"][:30]], dtype=np.float32),
    ),
    "slow query log with literals": (
        lambda p: logged("slow: SELECT 1 WHERE id = %d", p.table["person_id"][6], level=30),
        lambda p: logged("slow: SELECT 1 WHERE id = ?", level=30),
    ),
    "cache in SQLite": (
        lambda p: cached([("x" * 600, b"y" * 700), ("sum", total(p))]),
        lambda p: cached([("x" * 600, b"y" * 700), ("sum", noisy(total(p)))]),
    ),
    "export in a zip": (
        lambda p: zipped(p.table["name"][3] * 2),
        lambda p: zipped("no name"),
    ),
    "warning": (
        lambda p: warned(f"clipped {p.table['salary'][0]}"),
        lambda p: warned("some values may be clipped"),
    ),
    "standard output": (
        lambda p: sys.stdout.write(p.table["name"][0]),
        lambda p: sys.stdout.write("done"),
    ),
    "standard error of a native library": (
        lambda p: os.write(2, p.table["name"][0].encode()),
        lambda p: os.write(2, b"done"),
    ),
    "output of a child": (
        lambda p: os.system(f"echo {p.table['name'][0]}"),
        lambda p: os.system("echo done"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def planted():
    return audit.plant(rows=60)


@pytest.fixture(scope="module", autouse=True)
def silent_logger():
    logging.getLogger("silent").propagate = False


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found_and_its_twin_passes(name, planted):
    leaky, correct = LEAKS[name]
    found = audit.scan(lambda: leaky(planted), planted)
    assert not found.passed
    secret_values = {str(one) for column in planted.table.values() for one in column} - PUBLIC
    assert not any(one in str(found) + found.to_json() for one in secret_values)
    assert max(map(len, str(found).splitlines())) <= 80
    twin = audit.scan(lambda: correct(planted), planted)
    assert twin.passed, twin


PUBLIC = {"amber", "blue", "green", "red", "Aldermoor", "Brackenford", "Coldhaven"}


def test_all_is_as_before_after_a_scan(planted):
    before = sys.stdout, sys.stderr, os.environ.get("TMPDIR"), tempfile.gettempdir()
    levels = logging.root.level, logging.getLogger("silent").level
    audit.scan(lambda: fail(ValueError("no")), planted)
    assert before == (sys.stdout, sys.stderr, os.environ.get("TMPDIR"), tempfile.gettempdir())
    assert levels == (logging.root.level, logging.getLogger("silent").level)


def page(planted, *, debug):
    """An ASGI application that fails, with a traceback page or without."""

    async def app(scope, receive, send):
        assert scope["type"] == "http"
        status, body = 200, f"{noisy(total(planted))}".encode()
        if scope["path"] == "/fail":
            status, body = 500, b"Internal error"
            if debug:
                body = f"<pre>KeyError: {planted.table['email'][0]}</pre>".encode()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})

    return app


def test_a_traceback_page_of_an_application(planted):
    found = audit.scan(page(planted, debug=True), planted, requests=["/", "/fail?n=1"])
    assert [one.where for one in found.leaks] == [("body of GET /fail?n=1",)]
    assert audit.scan(page(planted, debug=False), planted, requests=["/", "/fail"]).passed


class Startable:
    """An application with a beginning and an end, and an error that escapes."""

    def __init__(self):
        self.events = []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                self.events.append((await receive())["type"])
                await send({"type": f"lifespan.{word}.complete"})
        else:
            self.events.append((await receive())["body"])
            raise RuntimeError("escaped")


def test_an_application_is_started_and_stopped(planted):
    app = Startable()
    asked = audit.WebRequest(path="/", method="POST", body=b"question")
    assert audit.scan(app, planted, requests=[asked]).passed
    assert app.events == ["lifespan.startup", b"question", "lifespan.shutdown"]
    answers = dict(audit.requesting(app, ["/"])())
    assert b"escaped" in answers["error of GET /"]


@pytest.mark.parametrize("leaks", [True, False])
def test_a_running_server(planted, leaks):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404 if self.path == "/gone" else 200)
            if leaks and self.path == "/gone":
                self.send_header("X-Debug", planted.table["name"][0])
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        found = audit.scan(address, planted, requests=["/", "/gone"])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found.passed is not leaks
    assert all("header x-debug of GET /gone" in one.where for one in found.leaks)


def test_a_folder_of_logs_without_the_planted_table_itself(planted, tmp_path):
    source = planted.write(tmp_path / "planted.csv")
    again = audit.Planted.read(source)
    assert all(list(again.table[name]) == list(planted.table[name]) for name in planted.table)
    (tmp_path / "app.log").write_text("started\n")
    assert audit.scan(tmp_path, again, excluded=[source]).passed
    assert not audit.scan(tmp_path, again).passed
    with gzip.open(tmp_path / "app.log.1.gz", "wt") as log:
        log.write(f"user {planted.table['email'][17]} asked")
    found = audit.scan(tmp_path, again, excluded=[source])
    assert [one.what for one in found.leaks] == ["email[17]"]
    assert found.leaks[0].where == ("file app.log.1.gz in gzip",)


def test_nothing_to_search_is_nothing_learned(planted):
    assert "NOTHING LEARNED" in str(audit.scan(lambda: "", planted))


def test_what_makes_no_sense_is_refused(planted, tmp_path):
    with pytest.raises(ParameterError, match="rows must be"):
        audit.plant(rows=3)
    with pytest.raises(ParameterError, match="alone must be"):
        audit.plant(rows=20, alone=21)
    with pytest.raises(ParameterError, match="false_alarm must be"):
        audit.scan(print, planted, false_alarm=0)
    with pytest.raises(ParameterError, match="surface must be"):
        audit.scan(3, planted)
    with pytest.raises(ParameterError, match="no folder"):
        audit.scan(tmp_path / "nowhere", planted)
    with pytest.raises(ParameterError, match="http://"):
        audit.scan("ftp://somewhere", planted, requests=["/"])
    with pytest.raises(ParameterError, match="begin with '/'"):
        audit.WebRequest(path="x")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no planted table"):
        audit.Planted.read(tmp_path / "other.csv")
