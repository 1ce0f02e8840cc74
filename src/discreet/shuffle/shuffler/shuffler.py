"""The shuffler itself: a state file, and the two transactions that change it."""

import hashlib
import hmac
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Final, final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet._exact import whole
from discreet.noise import SYSTEM, Source
from discreet.shuffle.batches.batch import BatchFacts, sign_batch
from discreet.shuffle.batches.order import shuffled
from discreet.shuffle.envelopes.keys import plain_text
from discreet.shuffle.shuffler.dummies import dummies
from discreet.shuffle.shuffler.senders import Passes
from discreet.shuffle.shuffler.settings import ShufflerSettings
from discreet.shuffle.shuffler.verdict import Arrival, Verdict
from discreet.shuffle.state.state_file import StateFile

__all__ = ["Shuffler"]

_KIND: Final = "a shuffler"
# No table has a sender beside an envelope, a time, or an order of its own: keys are digests.
_TABLES: Final = (
    "CREATE TABLE waiting (token BLOB PRIMARY KEY, envelope BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE senders (sender BLOB PRIMARY KEY, envelopes INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE tally (envelopes INTEGER NOT NULL, senders INTEGER NOT NULL)",  # that wait
    "INSERT INTO tally VALUES (0, 0)",
    "CREATE TABLE gone (token BLOB PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE batches (number INTEGER PRIMARY KEY, batch BLOB NOT NULL)",
    "CREATE TABLE counts (verdict TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
)
_TALLY: Final = "SELECT envelopes, senders FROM tally"
_COUNT: Final = (
    "INSERT INTO counts VALUES (?, ?) ON CONFLICT (verdict) DO UPDATE SET number = number + ?"
)
_SENT: Final = (
    "INSERT INTO senders VALUES (?, 1) ON CONFLICT (sender) DO UPDATE SET envelopes = envelopes + 1"
)


@final
class Shuffler:
    """Hide who sent which envelope among a minimum of different senders.

    Claim: an envelope that was acknowledged leaves in exactly one batch; a batch leaves only with
    its minimum of senders, and is given out until it is taken. All this holds if the process is
    killed at any moment. Once a batch has left, the file does not say who sent which envelope:
    senders are counted under a keyed hash whose key is drawn anew for every batch and deleted with
    it. While one waits, no table says it either, but where SQLite put the rows, and its log, tell
    in which order senders and envelopes came.

    Why: an arrival is acknowledged once its transaction is on the disk; a batch, the removal of its
    envelopes and senders, and the new key are one transaction too. An envelope that left is known
    by its digest for ever.

    >>> from discreet.testing import temporary_shuffle
    >>> with temporary_shuffle(minimum=2) as halves:
    ...     first, second = halves.arrivals([3, 1])
    ...     print(halves.shuffler.accept([first, first]), halves.shuffler.release())
    ...     print(halves.shuffler.accept([second]), halves.shuffler.release())
    [<Verdict.waiting: 'waiting'>, <Verdict.known: 'known'>] None
    [<Verdict.waiting: 'waiting'>] 1
    """

    def __init__(self, state: StateFile) -> None:
        self._state = state
        self.settings = ShufflerSettings.read(state.about("settings"))
        self.envelopes = self.settings.envelopes
        self._most = self.settings.most - self.settings.dummies
        self._passes = Passes(state.about("secret"))
        self._key = Ed25519PrivateKey.from_private_bytes(state.about("key"))

    @classmethod
    def make(cls, path: str | os.PathLike[str], settings: ShufflerSettings) -> "Shuffler":
        """Set up a shuffler in a new file, which also holds its keys.

        >>> import tempfile
        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     settings = halves.shuffler.settings
        >>> with Shuffler.make(f"{tempfile.mkdtemp()}/shuffler.db", settings) as shuffler:
        ...     len(shuffler.key)
        43
        """
        about: dict[str, str | bytes] = {
            "settings": settings.text,
            "secret": os.urandom(32),
            "key": Ed25519PrivateKey.generate().private_bytes_raw(),
            "round": os.urandom(32),
        }
        return cls(StateFile.make(path, kind=_KIND, tables=_TABLES, about=about))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Shuffler":
        """Open the file of a shuffler that was set up.

        >>> Shuffler.open("none.db")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: there is no file none.db.
        """
        return cls(StateFile.open(path, kind=_KIND))

    @property
    def key(self) -> str:
        """The public key by which the analyser knows its batches."""
        return plain_text(self._key.public_key().public_bytes_raw())

    @property
    def counts(self) -> dict[str, int]:
        """How many envelopes came to which verdict, ever; exact, also after a kill."""
        found = dict(self._state.rows("SELECT verdict, number FROM counts"))
        return {verdict.value: found.get(verdict.value, 0) for verdict in Verdict}

    @property
    def waiting(self) -> tuple[int, int]:
        """How many envelopes wait for the next batch, and from how many senders."""
        ((envelopes, senders),) = self._state.rows(_TALLY)
        return envelopes, senders

    def admit(self, count: int) -> list[str]:
        """Return tokens for so many new senders. Give each person or device one, and no second.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     [token[:3] for token in halves.shuffler.admit(2)]
        ['ds_', 'ds_']
        """
        return [self._passes.issue("sender") for _ in range(whole(count, name="count"))]

    def analyser_token(self) -> str:
        """Return a token with which the analyser takes batches.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     halves.shuffler.analyser_token()[:3]
        'da_'
        """
        return self._passes.issue("analyser")

    def is_analyser(self, token: str) -> bool:
        """Say whether a token is the analyser's.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     halves.shuffler.is_analyser(halves.tokens[0])
        False
        """
        return self._passes.name(token, "analyser") is not None

    def accept(self, arrivals: Sequence[Arrival]) -> list[Verdict]:
        """Keep the envelopes that may leave with the next batch, and say what became of each.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     halves.shuffler.accept([Arrival("ds_made_up", b"")])
        [<Verdict.stranger: 'stranger'>]
        """
        with self._state.write() as database:
            ((round_key,),) = database.execute("SELECT value FROM about WHERE name = 'round'")
            ((waiting, _),) = database.execute(_TALLY)
            room = self._most - waiting
            verdicts = []
            for arrival in arrivals:
                verdict = self._judge(database, arrival, round_key, room=room)
                room -= verdict is Verdict.waiting
                verdicts.append(verdict)
            counted = [(verdict.value, n, n) for verdict, n in Counter(verdicts).items()]
            database.executemany(_COUNT, counted)
        return verdicts

    def _judge(
        self, database: sqlite3.Connection, arrival: Arrival, round_key: bytes, *, room: int
    ) -> Verdict:
        name = self._passes.name(arrival.token, "sender")
        if name is None:
            return Verdict.stranger
        envelopes, envelope = self.envelopes, arrival.envelope
        if len(envelope) != envelopes.length or envelope[0] != envelopes.header[0]:
            return Verdict.malformed
        if not envelope.startswith(envelopes.header):
            return Verdict.foreign
        token = hashlib.sha256(envelope).digest()[:16]
        known = "SELECT 1 FROM waiting WHERE token = ? UNION ALL SELECT 1 FROM gone WHERE token = ?"
        if database.execute(known, (token, token)).fetchone():
            return Verdict.known
        sender = hmac.digest(round_key, name.encode(), hashlib.sha256)[:16]
        own = database.execute("SELECT envelopes FROM senders WHERE sender = ?", (sender,))
        had = (own.fetchone() or (0,))[0]
        if had >= self.settings.limit:
            return Verdict.excess
        if room <= 0:
            return Verdict.full
        database.execute("INSERT INTO waiting VALUES (?, ?)", (token, envelope))
        database.execute(_SENT, (sender,))
        tally = "UPDATE tally SET envelopes = envelopes + 1, senders = senders + ?"
        database.execute(tally, (not had,))
        return Verdict.waiting

    def release(self, *, source: Source = SYSTEM) -> int | None:
        """Make one batch of all that waits and return its number; None if senders are too few.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     print(halves.shuffler.release())
        None
        """
        settings = self.settings
        # Before the file is locked: nothing is learnt from who waits, and sealing takes its time.
        if self.waiting[1] < settings.minimum:
            return None
        added = dummies(
            settings.dummies, parameters=settings.parameters, key=settings.analyser, source=source
        )
        with self._state.write() as database:
            ((envelopes, senders),) = database.execute(_TALLY)
            if senders < settings.minimum:  # another process was quicker
                return None
            number = self._last(database) + 1
            facts = BatchFacts(
                collection=settings.parameters.collection,
                digest=settings.parameters.digest.hex(),
                number=number,
                id=source.read(16).hex(),
                senders=senders,
                minimum=settings.minimum,
                limit=settings.limit,
                dummies=settings.dummies,
                envelopes=envelopes + len(added),
                length=self.envelopes.length,
            )
            kept = [one for (one,) in database.execute("SELECT envelope FROM waiting")]
            body = b"".join(shuffled(kept + added, source=source))
            batch = sign_batch(facts, body, key=self._key)
            database.execute("INSERT INTO batches VALUES (?, ?)", (number, batch.raw))
            database.execute("INSERT INTO gone SELECT token FROM waiting")
            database.execute("DELETE FROM waiting")
            database.execute("DELETE FROM senders")
            database.execute("UPDATE tally SET envelopes = 0, senders = 0")
            database.execute("UPDATE about SET value = ? WHERE name = 'round'", (source.read(32),))
            database.execute("INSERT OR REPLACE INTO about VALUES ('last', ?)", (str(number),))
        self._state.forget()
        return number

    def _last(self, database: sqlite3.Connection) -> int:
        found = database.execute("SELECT value FROM about WHERE name = 'last'").fetchone()
        return 0 if found is None else int(found[0])

    def next(self) -> bytes | None:
        """Return the oldest batch that was not taken, again and again until it is; None if none.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     _ = halves.send([3, 1]), halves.shuffler.release()
        ...     halves.shuffler.next() == halves.shuffler.next()
        True
        """
        found = self._state.rows("SELECT batch FROM batches ORDER BY number LIMIT 1")
        return found[0][0] if found else None

    def taken(self, number: int) -> None:
        """Delete a batch that the analyser has on its own disk.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     _ = halves.send([3, 1]), halves.shuffler.release()
        ...     halves.shuffler.taken(1)
        ...     print(halves.shuffler.next())
        None
        """
        with self._state.write() as database:
            database.execute("DELETE FROM batches WHERE number = ?", (number,))
        self._state.forget()

    def close(self) -> None:
        """Let go of the file.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     halves.shuffler.close()
        """
        self._state.close()

    def __enter__(self) -> "Shuffler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
