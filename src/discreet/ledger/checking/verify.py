"""Check a whole ledger: replay its log, and compare the stored state with what that leads to."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

from discreet.errors import DiscreetError, LedgerError, LedgerUnavailable, TamperingFound
from discreet.ledger.checking.replay import Replay, rolled_back
from discreet.ledger.checking.verification import Verification
from discreet.ledger.log.proofs import Log
from discreet.ledger.log.state_tree import EMPTY, HASH, NODES, check_tree
from discreet.ledger.rules.entry import Entry, decode
from discreet.ledger.stores.protocol import Snapshot
from discreet.ledger.verifier import parse_checkpoint
from discreet.ledger.writing.sealed import SEAL

__all__ = ["check_answer", "verify"]

_CONTENT: Final = "content/"
_SKETCH: Final = "sketch/"
_BEYOND: Final = 2**62  # an entry behind the end of the log is as bad as a missing one


def verify(
    snapshot: Snapshot,
    *,
    pinned: Sequence[str] = (),
    vkey: str | None = None,
    since: Verification | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Check what a store holds; see :meth:`discreet.ledger.Ledger.verify`."""
    try:
        return _verify(snapshot, pinned=pinned, vkey=vkey, since=since, progress=progress)
    except DiscreetError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise TamperingFound("the storage holds something that was never put there.") from error


def _verify(
    snapshot: Snapshot,
    *,
    pinned: Sequence[str],
    vkey: str | None,
    since: Verification | None,
    progress: Callable[[int, int], None] | None,
) -> Verification:
    head, counts = snapshot.head(), snapshot.counts()
    if head is None:
        if any(counts):
            raise TamperingFound("the stored end of the log is gone.")
        raise LedgerError("this ledger is empty.")
    start = since.size if since else 0
    if head.size < start:
        raise rolled_back(head.size, start)
    replay = Replay(snapshot.row, pinned=pinned, vkey=vkey, since=since)
    _watch_witnessed(replay, Log(snapshot), start)
    replay.add_all(snapshot.rows(start, _BEYOND), size=head.size, progress=progress)
    result = replay.finish(head.note)
    if counts[0] != result.size:
        raise TamperingFound("there are entries outside of the log, where nothing was signed.")
    stored = (head.size, head.time, head.last.hex(), head.frontier.hex())
    if stored != (result.size, result.time, result.last, result.frontier):
        raise TamperingFound("the stored end of the log is not where it ends.", entry=result.size)
    _check_facts(replay, snapshot)
    _check_answers(snapshot, counts[1], result.releases)
    snapshot.check()
    return result


def _watch_witnessed(replay: "Replay", log: Log, start: int) -> None:
    """Prepare for witnesses. What cannot be read here will show where it stands in the log."""
    try:
        indices = log.witnessed()
    except (TamperingFound, ValueError):
        return
    for index in indices:
        try:
            size = parse_checkpoint(log.entry(index)["note"]).size
            replay.watch(size, log.root_at(size) if size <= start else None)
        except LedgerUnavailable:
            raise
        except (LedgerError, ValueError, KeyError, TypeError):
            continue


def _check_facts(replay: Replay, snapshot: Snapshot) -> None:
    """Compare the stored state with the one that the log leads to, both ways."""
    expected = replay.facts()
    contents = {name: value for name, value in expected.items() if name.startswith(_CONTENT)}
    stored = dict(snapshot.facts_under(""))
    seal = stored.pop(SEAL, None)
    nodes = {name: stored.pop(name) for name in list(stored) if name.startswith(NODES)}
    for name, value in stored.items():
        if name.startswith(_SKETCH):  # the log only commits to it; an import leaves it out
            said = contents.get(_CONTENT + name.removeprefix(_SKETCH))
            is_right = said == sha256(value.encode()).hexdigest()
        else:
            is_right = expected.pop(name, None) == value
        if not is_right:
            raise TamperingFound(
                f"the stored {name.partition('/')[0]} state is not what the log leads to."
            )
    if expected:
        kind = next(iter(expected)).partition("/")[0]
        raise TamperingFound(f"the stored {kind} state lacks what the log leads to.")
    if seal is not None or nodes:  # else nothing was written since it came from elsewhere
        check_tree(stored, nodes, (seal or EMPTY)[:HASH])


def _check_answers(snapshot: Snapshot, count: int, releases: int) -> None:
    seen = 0
    for index, answer in snapshot.answers():
        row = snapshot.row(index)
        check_answer({} if row is None else decode(row.body), index, answer)
        seen += 1
    if not count == seen == releases:
        rows = (row for row in snapshot.rows(0, _BEYOND) if decode(row.body)["kind"] == "release")
        gone = next((row.index for row in rows if snapshot.answer(row.index) is None), None)
        why = "the answer to a release is gone, or there is one too many."
        raise TamperingFound(why, entry=gone)


def check_answer(entry: Entry, index: int, answer: bytes) -> None:
    """Raise unless this is the answer that a release entry commits to."""
    is_it = type(answer) is bytes and entry.get("answer") == sha256(answer).hexdigest()
    if entry.get("kind") != "release" or not is_it:
        raise TamperingFound(f"the answer kept for entry {index} was altered.", entry=index)
