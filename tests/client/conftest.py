"""The same tables twice: protected here, and behind a gateway that really listens."""

import contextlib
import socket
import threading
from dataclasses import dataclass

import pytest
from gateway_sites import make_site

import discreet
from discreet.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Places:
    """A gateway under way, and how to ask its datasets from there and from here."""

    site: object
    url: str

    def remote(self, who="ana", dataset="people", **more):
        return discreet.connect(self.url, token=self.site.keys[who], dataset=dataset, **more)

    @contextlib.contextmanager
    def local(self, who="ana", dataset="people"):
        with (
            Ledger.open(self.site.settings.ledger) as ledger,
            discreet.open_tables(
                self.site.folder / f"{dataset}.toml", ledger=ledger, who=who, purpose="analysis"
            ) as tables,
        ):
            yield tables

    @contextlib.contextmanager
    def opened(self, where, who="ana"):
        with self.remote(who) if where == "remote" else self.local(who) as tables:
            yield tables


@contextlib.contextmanager
def places(folder, **more):
    site = make_site(folder, **more)
    with site.running() as url:
        yield Places(site=site, url=url)


@pytest.fixture
def make_places():
    return places


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    with places(tmp_path_factory.mktemp("both"), epsilon=1000) as made:
        yield made


@pytest.fixture(params=["local", "remote"])
def T(request, both):
    with both.opened(request.param) as tables:
        yield tables


@pytest.fixture(params=["local", "remote"])
def scarce(request, tmp_path):
    """Tables with an epsilon of 1, asked from here or from there."""
    with places(tmp_path, epsilon=1) as made, made.opened(request.param) as tables:
        yield tables


class Cutter:
    """Hands bytes on to a gateway; of some answers it lets a few bytes through, and hangs up."""

    def __init__(self, url):
        host, _, port = url.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.cuts, self.connections, self.after = 0, 0, 30
        self.sent = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        far = socket.create_connection(self._target)
        with near, far:
            while True:
                request = self._request(near)
                if not request:
                    return
                self.sent.append(request)
                far.sendall(request)
                is_cut = self.cuts > 0
                self.cuts -= is_cut
                answer = self._whole(far)
                if is_cut:
                    near.sendall(answer[: self.after])
                    return
                near.sendall(answer)

    def _request(self, near):
        return self._whole(near)

    @staticmethod
    def _whole(sock):
        """Read one message: its head, and as much as its length says."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = sock.recv(65536)
            if not piece:
                return data
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ]
        while len(body) < sum(lengths):
            body += sock.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


class Impostor:
    """Answers every request with the same bytes, or what a function makes of the request."""

    def __init__(self, answer):
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.requests = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            with near, contextlib.suppress(OSError):
                request = Cutter._whole(near)
                self.requests += 1
                for piece in self._answer(request):
                    near.sendall(piece)

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def cutter():
    with contextlib.ExitStack() as stack:

        def made(url):
            one = Cutter(url)
            stack.callback(one.close)
            return one

        yield made


@pytest.fixture
def impostor():
    with contextlib.ExitStack() as stack:

        def made(answer):
            one = Impostor(answer)
            stack.callback(one.close)
            return one

        yield made
