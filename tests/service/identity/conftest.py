"""A clock that tests set, and an issuer that they can change while it runs."""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@dataclass
class SmallIssuer:
    """Publishes ``keys`` over real HTTP, and counts how often it was asked for them."""

    url: str = ""
    keys: list = field(default_factory=list)
    asked: int = 0
    configuration: dict = field(default_factory=dict)
    answer: object = None  # instead of the keys: a status, or bytes
    redirect: str | None = None

    def reply(self, path):
        if path == "/.well-known/openid-configuration":
            told = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"} | self.configuration
            return 200, json.dumps(told).encode()
        self.asked += 1
        if self.redirect is not None:
            return 302, b""
        if isinstance(self.answer, int):
            return self.answer, b"{}"
        return 200, self.answer or json.dumps({"keys": self.keys}).encode()


@pytest.fixture
def small_issuer():
    issuer = SmallIssuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = issuer.reply(self.path)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", issuer.redirect)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield issuer
        server.shutdown()
        thread.join()
