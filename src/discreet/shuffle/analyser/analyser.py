"""The analyser itself: a state file, and what it does with a batch, each step at most once."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Final, final

from discreet._json import read_json
from discreet.accounting import Loss, from_json, to_json
from discreet.errors import DataError, ParameterError, TryLater
from discreet.ledger import Account
from discreet.local.wire import Sorted, sort_out
from discreet.privacy import Neighbours
from discreet.shuffle.analyser.amplification import Amplification
from discreet.shuffle.analyser.estimate import without_dummies
from discreet.shuffle.analyser.settings import AnalyserSettings
from discreet.shuffle.batches.batch import BatchFacts, read_batch, read_vouching_key
from discreet.shuffle.envelopes.keys import SealingKey, UnsealingKey
from discreet.shuffle.state.state_file import StateFile

__all__ = ["Analyser", "OpenedBatch"]

_KIND: Final = "an analyser"
_TABLES: Final = (
    # A batch is kept first; once it is paid for and opened, its reports replace its envelopes.
    "CREATE TABLE batches (number INTEGER PRIMARY KEY, facts TEXT NOT NULL, loss TEXT NOT NULL, "
    "digest BLOB NOT NULL, envelopes BLOB, who TEXT, found TEXT, reports BLOB)",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedBatch:
    """What became of a batch's envelopes, and the ledger's entry that paid for them.

    ``unreadable`` could not be opened; the other rejects are those of ``local.wire.sort_out``.

    >>> OpenedBatch(number=1, entry=2, accepted=98, unreadable=1, malformed=0, foreign=0,
    ...             out_of_range=0, replayed=1).dropped
    2
    """

    number: int
    entry: int
    accepted: int
    unreadable: int
    malformed: int
    foreign: int
    out_of_range: int
    replayed: int

    @property
    def dropped(self) -> int:
        """How many envelopes gave no report that may be counted."""
        return self.unreadable + self.malformed + self.foreign + self.out_of_range + self.replayed


@final
class Analyser:
    """Open batches that were paid for, and estimate from all of them.

    Claim: no batch is opened before the ledger has charged for it, and none is charged or counted
    twice, whenever the process is killed. All that is published depends on the batches that the
    account paid for, so the account's guarantee holds for it.

    Why: a batch is known by its number, and the charge by that number too. What it costs is
    decided when it is kept. Its reports are stored, and its envelopes removed, in one transaction.

    >>> from discreet.testing import temporary_shuffle
    >>> with temporary_shuffle(minimum=2) as halves:
    ...     _ = halves.send([3, 1, 1]), halves.carry()
    ...     (found,) = halves.analyser.open_kept(halves.account, who="ana")
    ...     found.accepted, halves.analyser.estimate().n
    (3, 3)
    """

    def __init__(self, state: StateFile) -> None:
        self._state = state
        self.settings = AnalyserSettings.read(state.about("settings"))
        self._key = UnsealingKey.read(state.about("key"))

    @classmethod
    def make(cls, path: str | os.PathLike[str], settings: AnalyserSettings) -> "Analyser":
        """Set up an analyser in a new file, which also holds its secret key.

        >>> import tempfile
        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     settings = halves.analyser.settings
        >>> with Analyser.make(f"{tempfile.mkdtemp()}/analyser.db", settings) as analyser:
        ...     len(analyser.key.text)
        87
        """
        about: dict[str, str | bytes] = {
            "settings": settings.text,
            "key": UnsealingKey.generate().kept,
        }
        return cls(StateFile.make(path, kind=_KIND, tables=_TABLES, about=about))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Analyser":
        """Open the file of an analyser that was set up.

        >>> Analyser.open("none.db")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: there is no file none.db.
        """
        return cls(StateFile.open(path, kind=_KIND))

    @property
    def key(self) -> SealingKey:
        """The public key that devices seal to."""
        return self._key.public

    def keep(self, raw: bytes, *, shuffler: str) -> int:
        """Write a batch of this shuffler to the disk and return its number; known ones stay.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     _ = halves.send([3, 1]), halves.shuffler.release()
        ...     halves.analyser.keep(halves.shuffler.next(), shuffler=halves.shuffler.key)
        1
        """
        batch = read_batch(raw, key=read_vouching_key(shuffler))
        self.settings.check(batch.facts)
        digest = hashlib.sha256(batch.written).digest()
        number = batch.facts.number
        with self._state.write() as database:
            known = database.execute("SELECT digest FROM batches WHERE number = ?", (number,))
            found = known.fetchone()
            if found is not None and found[0] != digest:
                raise DataError(
                    f"the shuffler has given out two different batches with the number {number}. "
                    "Nothing more is opened: ask its operator whether it was set back to a backup."
                )
            if found is None:
                loss = to_json(self.settings.amplification(batch.facts).loss)
                facts = json.dumps(asdict(batch.facts))
                database.execute(
                    "INSERT INTO batches VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)",
                    (number, facts, loss, digest, batch.body),
                )
        return number

    def open_kept(self, account: Account, *, who: str) -> list[OpenedBatch]:
        """Pay for each batch that was kept, open it, and return what was in it.

        Raises ``BudgetExceeded`` where the account cannot pay; what was kept stays closed.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     _ = halves.send([3, 1]), halves.carry()
        ...     [found.accepted for found in halves.analyser.open_kept(halves.account, who="ana")]
        [2]
        """
        if account.neighbours is not Neighbours.replace_one:
            raise ParameterError(
                "shuffling hides what a sender reports, not whether somebody sends: it is charged "
                f"to accounts of replace_one, but {account.name!r} is of {account.neighbours}. "
                "Nothing was opened. Open an account for this collection.",
                parameter="account",
            )
        closed = "SELECT number FROM batches WHERE found IS NULL ORDER BY number"
        return [self._open(number, account, who) for (number,) in self._state.rows(closed)]

    def _open(self, number: int, account: Account, who: str) -> OpenedBatch:
        # A charge that a kill left behind is found again only as it was made, so by that name.
        with self._state.write() as database:
            first = "UPDATE batches SET who = ? WHERE number = ? AND who IS NULL"
            database.execute(first, (who, number))
        query = "SELECT facts, loss, envelopes, who FROM batches WHERE number = ?"
        ((facts, loss, body, payer),) = self._state.rows(query, number)
        told = BatchFacts(**read_json(facts))
        paid: Loss = from_json(loss)
        receipt = account.charge(
            paid,
            who=payer,
            purpose=f"batch {number} of {self.settings.parameters.name}"[:200],
            key=f"shuffle {told.collection} {number} {told.id}",
        )
        # Only now: until here nobody has seen a report.
        envelopes = self.settings.envelopes
        step = envelopes.length
        pieces = (body[start : start + step] for start in range(0, len(body), step))
        opened = [envelopes.open(piece, key=self._key) for piece in pieces]
        reports = [report for report in opened if report is not None]
        found = sort_out(self.settings.parameters, reports, seen=self._tokens())
        result = _result(found, number, receipt.index, unreadable=len(opened) - len(reports))
        kept = b"".join(reports[i] for i in found.positions.tolist())
        written = json.dumps(asdict(result), sort_keys=True)
        answer = f"{written} {hashlib.sha256(kept).hexdigest()}".encode()
        account.record(receipt, answer, plan=f"shuffled batch {told.id}")
        with self._state.write() as database:
            database.execute(
                "UPDATE batches SET found = ?, reports = ?, envelopes = NULL WHERE number = ?",
                (written, kept, number),
            )
        self._state.forget()
        return result

    def _tokens(self) -> set[bytes]:
        """Return the tokens of all reports that were counted."""
        return set(sort_out(self.settings.parameters, self._reports()).tokens)

    def _reports(self) -> list[bytes]:
        kept = self._state.rows("SELECT reports FROM batches WHERE reports IS NOT NULL")
        step = self.settings.envelopes.report
        return [
            blob[start : start + step] for (blob,) in kept for start in range(0, len(blob), step)
        ]

    @property
    def opened(self) -> list[OpenedBatch]:
        """What was in the batches that were opened."""
        rows = self._state.rows("SELECT found FROM batches WHERE found IS NOT NULL ORDER BY number")
        return [OpenedBatch(**read_json(found)) for (found,) in rows]

    @property
    def amplifications(self) -> list[Amplification]:
        """What the batches cost that were opened."""
        rows = self._state.rows("SELECT facts FROM batches WHERE found IS NOT NULL ORDER BY number")
        return [self.settings.amplification(BatchFacts(**read_json(facts))) for (facts,) in rows]

    def estimate(self) -> Any:
        """Return what the collection's randomiser estimates from all batches that were opened.

        Free: it is post-processing of what was paid for.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     halves.analyser.estimate()
        Traceback (most recent call last):
            ...
        discreet.errors.TryLater: there is no estimate of fewer than 2 senders' reports...
        """
        rows = self._state.rows("SELECT facts FROM batches WHERE found IS NOT NULL")
        dummies = sum(read_json(facts)["dummies"] for (facts,) in rows)
        reports = self._reports()
        if len(reports) - dummies < self.settings.minimum:
            raise TryLater(
                f"there is no estimate of fewer than {self.settings.minimum} senders' reports. "
                "Open more batches first: discreet shuffle analyse"
            )
        randomiser = self.settings.parameters.randomiser
        found = sort_out(self.settings.parameters, reports)
        return without_dummies(randomiser.estimate(found.reports), dummies=dummies)

    def close(self) -> None:
        """Let go of the file.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     halves.analyser.close()
        """
        self._state.close()

    def __enter__(self) -> "Analyser":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _result(found: Sorted, number: int, entry: int, *, unreadable: int) -> OpenedBatch:
    names = ("accepted", "malformed", "foreign", "out_of_range", "replayed")
    counts = {name: getattr(found, name) for name in names}
    return OpenedBatch(number=number, entry=entry, unreadable=unreadable, **counts)
