"""A gateway for tests of the wire: a real desk over real tables, and a door with two people."""

import asyncio
import hashlib
import hmac
import socket
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from discreet.errors import NotAllowed, Unauthenticated
from discreet.service.identity.limits import RequestLimit, RequestLimits
from discreet.service.identity.login import Login, Role
from discreet.service.wire import WireSettings, serve_wire

SECRET = "open sesame"
KEY = "dk_ana"
TOKEN = f"{KEY}.{SECRET}"
USERS = {KEY: "ana", "dk_bob": "bob"}


@dataclass(frozen=True)
class KnownVerifier:
    """What SCRAM needs of a secret, as a store of API keys keeps it."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, password: str, *, salt: bytes, iterations: int = 4096) -> "KnownVerifier":
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
        client = hmac.digest(salted, b"Client Key", "sha256")
        server = hmac.digest(salted, b"Server Key", "sha256")
        return cls(salt, iterations, hashlib.sha256(client).digest(), server)


class SmallDoor:
    """Two API keys, one secret."""

    def login(self, token: str) -> Login:
        key, _, secret = token.partition(".")
        if secret != SECRET:
            raise Unauthenticated
        return self.login_by_id(key)

    def scram(self, user: str) -> KnownVerifier:
        salt = hashlib.sha256(b"salt of " + user.encode()).digest()[:16]
        return KnownVerifier.of(SECRET if user in USERS else "nobody knows", salt=salt)

    def login_by_id(self, user: str) -> Login:
        if user not in USERS:
            raise Unauthenticated
        return Login(who=USERS[user], roles=frozenset({Role.ANALYST}), key=user)


@dataclass
class SmallDesk:
    """The tables of some datasets, to be asked in threads, as a gateway does."""

    datasets: dict
    asked: list = field(default_factory=list)

    def visible(self, login):
        return [name for name in self.datasets if login.sees(name)]

    def tables(self, login, dataset):
        return self._of(login, dataset).tables

    async def columns(self, login, dataset, question, *, errors, periods):
        tables = self._of(login, dataset)
        return await asyncio.to_thread(tables.columns, question, errors=errors, periods=periods)

    async def quote(self, login, dataset, question, offer):
        return await asyncio.to_thread(self._of(login, dataset).quote, question, offer)

    async def answer(self, login, dataset, question, offer, *, degrade):
        self.asked.append((login.who, question, offer))
        return await asyncio.to_thread(self._of(login, dataset).sql, question, offer)

    def remaining(self, login, dataset):
        return self._of(login, dataset).remaining

    def _of(self, login, dataset):
        if dataset not in self.visible(login):
            raise NotAllowed(f"there is no dataset {dataset!r} for this login. Nothing was spent.")
        return self.datasets[dataset]


@dataclass
class RunningWire:
    """A front end that runs in a thread of its own."""

    desk: SmallDesk
    server: object
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        return self.server.port

    def url(
        self, *, user: str = KEY, password: str = SECRET, dataset: str = "people", **more
    ) -> str:
        """Return where to connect; ``more`` are parameters of libpq."""
        options = "&".join(f"{name}={value}" for name, value in more.items())
        host = f"{user}:{password.replace(' ', '%20')}@127.0.0.1:{self.port}"
        return f"postgresql://{host}/{dataset}" + (f"?{options}" if options else "")

    def do(self, work):
        """Run a coroutine where the server runs."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextmanager
def running_wire(desk, *, door=None, tls=None, logins=6000, strangers=6000, **settings):
    """Serve a desk on a free port of the loopback."""
    started, loop = threading.Event(), asyncio.new_event_loop()

    def serve():
        asyncio.set_event_loop(loop)
        loop.call_soon(started.set)
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    started.wait(30)
    rules = WireSettings(**{"catalogue_seconds": 30.0, **settings})
    limits = RequestLimits(*(RequestLimit(per_minute=most) for most in (logins, logins, strangers)))
    made = serve_wire(desk, door or SmallDoor(), limits=limits, port=0, tls=tls, settings=rules)
    server = asyncio.run_coroutine_threadsafe(made, loop).result(60)
    wire = RunningWire(desk, server, loop)
    try:
        yield wire
    finally:
        wire.do(server.close())
        wire.do(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def own_certificate(folder) -> tuple[ssl.SSLContext, bytes, str]:
    """Return a TLS context with a certificate of its own, the certificate in DER, and its file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, place = serialization.Encoding.PEM, folder / "server.pem"
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    place.write_bytes(private + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    return context, made.public_bytes(serialization.Encoding.DER), str(place)


def startup(**parameters: str) -> bytes:
    """Return the packet that begins a session."""
    words = b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items()) + b"\0"
    return framed(b"", (3 << 16).to_bytes(4, "big") + words)


def framed(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message of a kind."""
    return kind + (len(body) + 4).to_bytes(4, "big") + body


class RawClient:
    """Sends bytes, and reads messages as they come."""

    def __init__(self, wire, *, begin=True, password=TOKEN, **parameters):
        self.socket = socket.create_connection(("127.0.0.1", wire.port), timeout=60)
        self.key = None
        if begin:
            given = {"user": "token", "database": "people", **parameters}
            self.socket.sendall(startup(**given) + framed(b"p", f"{password}\0".encode()))
            for kind, body in self.until(b"Z"):
                self.key = body if kind == b"K" else self.key

    def send(self, *messages):
        self.socket.sendall(b"".join(messages))
        return self

    def exactly(self, size):
        found = b""
        while len(found) < size:
            more = self.socket.recv(size - len(found))
            if not more:
                raise EOFError
            found += more
        return found

    def read(self):
        """Return the next message."""
        kind = self.exactly(1)
        size = int.from_bytes(self.exactly(4), "big")
        return kind, self.exactly(size - 4)

    def until(self, *kinds):
        """Return messages up to one of some kind."""
        found = [self.read()]
        while found[-1][0] not in kinds:
            found.append(self.read())
        return found

    def query(self, text):
        """Ask by the simple protocol, and return what comes until the end."""
        return self.send(framed(b"Q", text.encode() + b"\0")).until(b"Z")

    def rest(self):
        """Return what comes until the other side hangs up."""
        found = []
        try:
            while True:
                found.append(self.read())
        except (EOFError, ConnectionError):
            return found

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def fields_of(body: bytes) -> dict[str, str]:
    """Return the fields of an error or notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def errors_in(messages) -> list[dict[str, str]]:
    """Return the fields of the errors among messages."""
    return [fields_of(body) for kind, body in messages if kind == b"E"]
