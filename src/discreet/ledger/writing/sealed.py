"""Seal the state together with the end of the log, so that what decides is what was written last.

Without the key nobody can put a row of the state back to what it was, or take one away: the root
of the tree over the state is sealed with the ledger's secret, together with where the log ends. A
ledger without a seal is from an earlier version or from an export. It is verified whole, once, and
sealed with the next step; so taking the seal away as well wins nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from discreet.errors import LedgerError, LedgerUnavailable, TamperingFound
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.proofs import Log
from discreet.ledger.log.state_tree import EMPTY, HASH, StateTree
from discreet.ledger.log.tree import inclusion, root
from discreet.ledger.stores.protocol import Head, Row, Snapshot
from discreet.ledger.verifier import NotProven, check_inclusion, leaf_hash

__all__ = ["SEAL", "Read", "check_entry", "check_facts", "open_tree", "seal_of"]

SEAL: Final = "seal"  # the fact that it is kept in

Read = Callable[[Sequence[str]], Mapping[str, str]]


def seal_of(key: SigningKey, state: str, head: Head) -> str:
    """Return the seal of a state, by the root of its tree, at this end of the log."""
    end = f"{head.size} {head.last.hex()} {head.frontier.hex()} {len(head.time)} {head.time}"
    return state + key.fingerprint(f"{state} {end}{head.note}", domain="state")


def open_tree(
    read: Read, head: Head | None, key: SigningKey, verified: Callable[[], Mapping[str, str]]
) -> StateTree:
    """Return the tree over the state as it was sealed, or over ``verified`` where it never was."""
    if head is None:
        return StateTree(read, EMPTY)
    seal = read([SEAL]).get(SEAL)
    if seal is None:
        tree = StateTree(read, EMPTY)
        tree.put(verified())
        return tree
    try:
        if seal == seal_of(key, seal[:HASH], head):
            return StateTree(read, seal[:HASH])
    except (AttributeError, TypeError):  # a value of another type
        pass
    raise TamperingFound(
        "the stored end of the log, or the seal of the state, is not what was written last. "
        "Nothing was written. Find out what was altered with: discreet ledger verify"
    )


def check_facts(snapshot: Snapshot, key: SigningKey, facts: Mapping[str, str | None]) -> None:
    """Raise unless these are facts that were written last; None stands for one that is not there.

    Before a ledger without a seal is sealed, by the next that is written, there is no telling.
    """
    if SEAL in snapshot.facts([SEAL]):
        tree = open_tree(snapshot.facts, snapshot.head(), key, dict)
        for name, value in facts.items():
            tree.check(name, value)


def check_entry(snapshot: Snapshot, head: Head, row: Row) -> None:
    """Raise unless this entry is in the log that ends here."""
    try:
        proof = inclusion(row.index, head.size, Log(snapshot).node)
        leaf = leaf_hash(row.body.encode())
        check_inclusion(leaf, row.index, head.size, proof, root(head.frontier))
    except LedgerUnavailable:
        raise
    except (NotProven, LedgerError, ValueError, TypeError, AttributeError) as error:
        raise TamperingFound(
            f"entry {row.index}, or one beside it, is not what was written. Nothing was written. "
            "Find out what was altered with: discreet ledger verify",
            entry=row.index,
        ) from error
