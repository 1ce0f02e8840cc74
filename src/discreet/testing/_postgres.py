"""A private PostgreSQL server for tests: real, short-lived, on the loopback, gone afterwards."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal, Self, final

from discreet.errors import DiscreetError, MissingExtra

__all__ = ["PostgresServer", "postgres_programs"]

_LOOPBACK = "127.0.0.1"
_PATIENCE = 120.0  # seconds for a server to start or stop; it needs one, and more on a busy disk
# A second server on the same data while children of a killed one are still leaving:
_STILL_LEAVING = "still in use"
_PORT_TAKEN = "could not create any TCP/IP sockets"


def postgres_programs(*, path: str | None = None) -> Path | None:
    """Return the folder of the newest ``initdb`` and ``postgres``, or None where there is none.

    ``PATH`` comes first; Debian keeps the server's programs outside of it.

    >>> postgres_programs(path="/nowhere") in (None, *Path("/usr/lib/postgresql").glob("*/bin"))
    True
    """
    found = shutil.which("initdb", path=path)
    if found is not None:
        # Where it really lives: initdb looks for postgres beside itself.
        return Path(found).resolve().parent
    folders = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: _version(folder.parent.name), default=None)


def _version(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return 0.0


@final
class PostgresServer:
    """Run a PostgreSQL server that nobody else uses, in a temporary folder.

    It listens on a free port of the loopback only (no Unix socket), asks for a random password,
    keeps ``fsync`` on, and runs as an unprivileged user where we are root. Leaving the ``with``
    block ends it and removes every file. ``settings`` are lines of its configuration.

    >>> server = PostgresServer(settings={"max_connections": "20"})  # starts nothing yet
    >>> server
    PostgresServer(not running)
    """

    def __init__(self, *, settings: dict[str, str] | None = None) -> None:
        self._settings = dict(settings or {})
        self._password = secrets.token_hex(16)
        self._folder: Path | None = None
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def __repr__(self) -> str:
        return f"PostgresServer({f'port {self._port}' if self._process else 'not running'})"

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
        try:
            self._initialise(self._folder)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(mode="immediate")  # the data goes anyway
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @property
    def url(self) -> str:
        """Where to connect, with the password; the database is the one that is always there."""
        return self._url("postgres")

    def _url(self, database: str) -> str:
        return f"postgresql://owner:{self._password}@{_LOOPBACK}:{self._port}/{database}"

    def new_database(self) -> str:
        """Create an empty database and return its URL.

        >>> PostgresServer().new_database()
        Traceback (most recent call last):
            ...
        discreet.errors.DiscreetError: this server is not running. Start it with: with server: ...
        """
        if self._process is None:
            raise DiscreetError("this server is not running. Start it with: with server: ...")
        try:
            import psycopg
        except ImportError:
            raise MissingExtra(room="discreet.testing", needs="psycopg", extra="postgres") from None
        self._databases += 1
        name = f"fresh_{self._databases}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._url(name)

    def start(self) -> None:
        """Start the server on its data, and return when it takes connections.

        The port stays the same over restarts, so that clients can come back.

        >>> PostgresServer().start()
        Traceback (most recent call last):
            ...
        discreet.errors.DiscreetError: this server has no data. Make it with: with server: ...
        """
        if self._process is not None:
            return
        if self._folder is None:
            raise DiscreetError("this server has no data. Make it with: with server: ...")
        deadline = time.monotonic() + _PATIENCE
        while True:
            if not self._port:
                self._port = _free_port()
            if self._started(deadline):
                return
            told = self.log()
            if _PORT_TAKEN in told and not self._databases:
                self._port = 0  # somebody was faster; nobody knows our port yet
            elif _STILL_LEAVING not in told or time.monotonic() > deadline:
                raise DiscreetError(f"PostgreSQL did not start:\n{told}")
            time.sleep(0.05)

    def stop(self, *, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server: in order, or at once as after a power cut (it recovers on start).

        >>> PostgresServer().stop()  # nothing to stop
        """
        if self._process is not None:
            ways = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
            self._process.send_signal(ways[mode])
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End every process of the server with SIGKILL; harmless where none runs.

        >>> PostgresServer().kill()  # nothing to kill
        """
        if self._process is not None:
            # Each child leads a process group of its own, so no single signal reaches them all.
            children = _children(self._process.pid)
            self._process.kill()
            for child in children:
                _signal(child, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def log(self) -> str:
        """Return what the server wrote since it was last started.

        >>> PostgresServer().log()  # it has not said anything yet
        ''
        """
        if self._folder is None or not (self._folder / "log").exists():
            return ""
        return (self._folder / "log").read_text(errors="replace")

    def _initialise(self, folder: Path) -> None:
        self._programs()  # says what is missing before anything is made
        if os.getuid() == 0:
            user = _unprivileged()
            os.chown(folder, user.pw_uid, user.pw_gid)
        secret = folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self._password)
        if os.getuid() == 0:
            os.chown(secret, user.pw_uid, user.pw_gid)
        initdb = [
            *("--pgdata", str(folder / "data"), "--username", "owner", "--pwfile", str(secret)),
            *("--auth-host", "scram-sha-256", "--auth-local", "reject"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
        ]
        done = self._run("initdb", initdb)
        if done.wait():
            raise DiscreetError(f"initdb failed:\n{self.log()}")
        secret.unlink()

    def _started(self, deadline: float) -> bool:
        assert self._folder is not None, "enter the server's with block first"
        pid_file = self._folder / "data" / "postmaster.pid"
        settings = {
            "listen_addresses": _LOOPBACK,
            "unix_socket_directories": "",
            "port": str(self._port),
            "fsync": "on",
            **self._settings,
        }
        options = [part for k, v in settings.items() for part in ("-c", f"{k}={v}")]
        process = self._run("postgres", ["-D", str(self._folder / "data"), *options])
        while process.poll() is None:
            if _is_ready(pid_file, process.pid):
                self._process = process
                return True
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
            time.sleep(0.01)
        return False

    def _run(self, program: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        assert self._folder is not None
        who = _unprivileged() if os.getuid() == 0 else None
        with open(self._folder / "log", "wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                [str(self._programs() / program), *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
                # Ctrl-C in the terminal is for the tests, which then stop the server in order.
                start_new_session=True,
                user=who.pw_uid if who else None,
                group=who.pw_gid if who else None,
                extra_groups=[] if who else None,
            )

    @staticmethod
    def _programs() -> Path:
        folder = postgres_programs()
        if folder is None:
            raise DiscreetError(
                "no PostgreSQL server is installed: neither PATH nor /usr/lib/postgresql has "
                "initdb. Install it with: apt-get install postgresql"
            )
        return folder


def _unprivileged() -> pwd.struct_passwd:
    """Return a user that may own nothing of ours: PostgreSQL refuses to run as root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise DiscreetError("PostgreSQL does not run as root, and there is no user 'nobody'.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_ready(pid_file: Path, pid: int) -> bool:
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() in ("ready", "standby")


def _children(pid: int) -> list[int]:
    """Return the children where the kernel tells; elsewhere they leave when the parent is gone."""
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
