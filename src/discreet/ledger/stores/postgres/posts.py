"""What other clients want done, as the mailbox of the server holds it."""

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from discreet.ledger.stores.postgres import statements as sql
from discreet.ledger.stores.postgres.values import numbers, values
from discreet.ledger.stores.postgres.wire import BoundStatement

__all__ = ["Post", "replies", "some"]

MOST_REQUESTS = 2_000  # of others in one transaction: a bound on how long one commit keeps all


class Post(NamedTuple):
    """What another client wants done."""

    slot: int
    ticket: int
    requests: list[bytes]


def some(posts: list[Post]) -> list[Post]:
    """Return as many posts as one transaction should carry out."""
    ends = accumulate(len(post.requests) for post in posts)
    return [post for post, end in zip(posts, ends, strict=True) if end <= MOST_REQUESTS]


def replies(answers: Iterable[tuple[Post, bytes | None]]) -> BoundStatement:
    """Return the statement that gives answers to those who wait; None leaves it to them."""
    posts, bodies = zip(*answers, strict=True)
    return sql.REPLY, [
        numbers(post.slot for post in posts),
        numbers(post.ticket for post in posts),
        values(bodies),
    ]
