"""The whole log as one text file that verifies on its own: a JSON object on each line.

The first line names the format, the origin and the number of entries; then come the entries,
exactly as they were hashed, then the answers that were kept, and last the signed checkpoint.
"""

import json
import os
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, final

from discreet._json import read_json
from discreet.errors import LedgerError, ParameterError, TamperingFound
from discreet.ledger.checking.replay import Replay
from discreet.ledger.checking.verification import Verification
from discreet.ledger.checking.verify import check_answer
from discreet.ledger.log.proofs import Log
from discreet.ledger.log.tree import Tree
from discreet.ledger.rules.entry import decode
from discreet.ledger.stores.protocol import Head, Row, Snapshot, Store, Transaction
from discreet.ledger.verifier import NotProven, leaf_hash, parse_checkpoint
from discreet.ledger.writing.scribe import account_of

__all__ = ["Export", "load_into", "write"]

FORM: Final = "discreet-ledger-export/1"
_CHUNK: Final = 5_000
_FIRST_LINE: Final = 1 << 16  # bytes, at most: another file may have no line at all
Progress = Callable[[int, int], None]


def write(snapshot: Snapshot, out: BinaryIO, *, progress: Progress | None = None) -> int:
    """Write the log that a snapshot shows, and return how many entries it has."""
    head = Log(snapshot).head()
    origin = read_json(snapshot.facts(["ledger"])["ledger"])["origin"]
    out.write(_line({"format": FORM, "origin": origin, "size": head.size}))
    for row in snapshot.rows(0, head.size):
        out.write(row.body.encode() + b"\n")
        if progress is not None and row.index % 10_000 == 0:
            progress(row.index, head.size)
    for index, answer in snapshot.answers():
        out.write(_line({"answer": b64encode(answer).decode(), "release": index}))
    out.write(_line({"checkpoint": head.note}))
    if progress is not None:
        progress(head.size, head.size)
    return head.size


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@final
class Export:
    """An exported log in a file. It need not fit into memory.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "empty.ndjson")
    ...     _ = open(path, "w").close()
    ...     Export(path)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: ... is not an exported ledger.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        try:
            with self._path.open("rb") as file:
                first = read_json(file.readline(_FIRST_LINE), strict=True)
                self.size = int(first["size"])
                self.origin = str(first["origin"])
                form = first["format"]
        except OSError as error:
            raise ParameterError(
                f"{path} cannot be read ({error.strerror}).", parameter="path"
            ) from error
        except (ValueError, KeyError, TypeError):
            form = None
        if form != FORM:
            raise ParameterError(f"{path} is not an exported ledger.", parameter="path")
        self._offsets = array("Q")  # where entries begin, once they were read
        self.checkpoint = ""

    def verify(
        self,
        *,
        pinned: Sequence[str] = (),
        vkey: str | None = None,
        progress: Progress | None = None,
    ) -> Verification:
        """Check the whole file; raise :class:`TamperingFound` with the first bad entry.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_ledger
        >>> file = os.path.join(tempfile.mkdtemp(), "ledger.ndjson")
        >>> with temporary_ledger() as ledger:
        ...     _ = ledger.export(file)
        >>> print(Export(file).verify())
        1 entries verified
        """
        replay = Replay(self._row, pinned=pinned, vkey=vkey)
        for note in self._witnessed():
            with suppress(NotProven):  # a bad one shows where it stands in the log
                replay.watch(parse_checkpoint(note).size)
        replay.add_all(self._without_repeats(), size=self.size, progress=progress)
        answers = 0
        for index, answer in self.answers():
            kept = self._row(index)
            check_answer({} if kept is None else decode(kept.body), index, answer)
            answers += 1
        result = replay.finish(self.checkpoint)
        if answers != result.releases:
            raise TamperingFound("the answer to a release is gone, or one too many is there.")
        if parse_checkpoint(self.checkpoint).origin != self.origin:
            raise TamperingFound("the first line names another ledger than the checkpoint.")
        return result

    def _without_repeats(self) -> Iterator[Row]:
        """Go through the entries; a database sees to it itself that no key comes twice."""
        keys: set[str | None] = set()
        for row in self.rows():
            if row.key in keys:
                raise TamperingFound(
                    f"entry {row.index} repeats an earlier request.", entry=row.index
                )
            keys.add(row.key)
            yield row

    def _witnessed(self) -> Iterator[str]:
        """Go through the checkpoints that witnesses signed, before anything is verified."""
        with self._path.open("rb") as file:
            for line in file:
                if b'"kind":"witness"' in line:
                    with suppress(ValueError, KeyError, TypeError):
                        yield str(read_json(line, strict=True)["note"])

    def rows(self) -> Iterator[Row]:
        """Go through the entries. Their hashes are for the reader to work out.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_ledger
        >>> file = os.path.join(tempfile.mkdtemp(), "ledger.ndjson")
        >>> with temporary_ledger() as ledger:
        ...     _ = ledger.export(file)
        >>> [row.index for row in Export(file).rows()]
        [0]
        """
        del self._offsets[:]
        with self._path.open("rb") as file:
            file.readline()
            for index in range(self.size):
                self._offsets.append(file.tell())
                line = file.readline()
                if not line.startswith(b'{"') or not line.endswith(b"\n"):
                    raise TamperingFound(f"entry {index} is missing or cut off.", entry=index)
                yield _row(index, line[:-1])

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """Go through the kept answers, up to the checkpoint in the last line.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_account
        >>> from discreet.accounting import PureLoss
        >>> file = os.path.join(tempfile.mkdtemp(), "ledger.ndjson")
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=1), who="ana", purpose="report")
        ...     _ = account.release(receipt, b"42")
        ...     _ = account.ledger.export(file)
        >>> list(Export(file).answers())
        [(3, b'42')]
        """
        with self._path.open("rb") as file:
            for _ in range(self.size + 1):
                file.readline()
            for line in file:
                try:
                    document = read_json(line, strict=True)
                    if "checkpoint" in document:
                        self.checkpoint = str(document["checkpoint"])
                        break
                    yield int(document["release"]), b64decode(document["answer"], validate=True)
                except (ValueError, KeyError, TypeError) as error:
                    raise TamperingFound("a line behind the entries cannot be read.") from error
            if not self.checkpoint or file.read(1):
                raise TamperingFound(
                    "the checkpoint is not the last line: it was cut off or moved."
                )

    def _row(self, index: int) -> Row | None:
        if not 0 <= index < len(self._offsets):
            return None
        with self._path.open("rb") as file:
            file.seek(self._offsets[index])
            return _row(index, file.readline()[:-1])


def _row(index: int, line: bytes) -> Row:
    try:
        body = line.decode()
        entry = decode(body)
        return Row(index, account_of(entry), entry.get("key"), body, None)
    except (ValueError, KeyError, TypeError) as error:
        raise TamperingFound(f"entry {index} cannot be read.", entry=index) from error


def load_into(store: Store, export: Export, verified: Verification) -> None:
    """Write a verified export into an empty store, all of it or nothing."""

    def checked(transaction: Transaction) -> Iterator[tuple[int, bytes]]:
        for index, answer in export.answers():
            row = transaction.row(index)
            check_answer({} if row is None else decode(row.body), index, answer)
            yield index, answer

    def work(transaction: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        if transaction.head() is not None:
            raise LedgerError("this ledger is not empty. Import into a new one.")
        tree, rows = Tree(), export.rows()
        while chunk := list(islice(rows, _CHUNK)):
            transaction.append(
                [row._replace(hashes=tree.add(leaf_hash(row.body.encode()))) for row in chunk]
            )
        if (tree.size, tree.frontier.hex()) != (verified.size, verified.frontier):
            raise TamperingFound("the file changed after it was verified. Nothing was imported.")
        transaction.put_facts(dict(verified.facts))
        transaction.put_answers(checked(transaction))
        transaction.put_head(
            Head(
                size=verified.size,
                time=verified.time,
                last=bytes.fromhex(verified.last),
                frontier=bytes.fromhex(verified.frontier),
                note=verified.checkpoint,
            )
        )
        return [b""] * len(requests)

    store.commit_together([b"import"], work)
