"""What is shown of released keys and aggregates: post-processing, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from discreet.tables.model.scalar import (
    ReleasedAggregate,
    Scalar,
    form,
    rewritten,
    walk,
)

__all__ = ["Order", "Output"]


@final
@dataclass(frozen=True, slots=True)
class Order:
    """One thing to sort by.

    >>> Order(ReleasedAggregate(0)).is_descending
    False
    """

    by: Scalar
    is_descending: bool = False
    nulls_first: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The columns of an answer, which of its rows are shown, and in which order.

    Everything is made of :class:`~discreet.tables.model.scalar.ReleasedKey` and
    :class:`~discreet.tables.model.scalar.ReleasedAggregate`.

    >>> Output(columns=(("n", ReleasedAggregate(0)),)).plain
    {'n': 0}
    """

    columns: tuple[tuple[str, Scalar], ...] = ()
    where: Scalar | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def plain(self) -> dict[str, int]:
        """The columns that show an aggregate as it is, and which."""
        return {n: node.index for n, node in self.columns if isinstance(node, ReleasedAggregate)}

    @property
    def is_whole(self) -> bool:
        """Whether all rows are shown."""
        return self.where is None and self.limit is None and self.offset is None

    @property
    def aggregates(self) -> frozenset[int]:
        """The aggregates that anything here is made of."""
        found = (inner for node in self._nodes() for inner in walk(node))
        return frozenset(node.index for node in found if isinstance(node, ReleasedAggregate))

    def renumbered(self, positions: Mapping[int, int]) -> "Output":
        """Return the same over aggregates that have other positions.

        >>> Output(columns=(("n", ReleasedAggregate(0)),)).renumbered({0: 3}).plain
        {'n': 3}
        """

        def moved(node: Scalar) -> Scalar:
            if isinstance(node, ReleasedAggregate):
                return ReleasedAggregate(positions[node.index])
            return node

        return Output(
            columns=tuple((name, rewritten(node, moved)) for name, node in self.columns),
            where=None if self.where is None else rewritten(self.where, moved),
            order=tuple(
                Order(rewritten(one.by, moved), one.is_descending, one.nulls_first)
                for one in self.order
            ),
            limit=self.limit,
            offset=self.offset,
        )

    def form(self) -> dict[str, object]:
        """Return it as plain lists, which tell all outputs apart."""
        return {
            "columns": [[name, form(node)] for name, node in self.columns],
            "where": None if self.where is None else form(self.where),
            "order": [[form(one.by), one.is_descending, one.nulls_first] for one in self.order],
            "limit": self.limit,
            "offset": self.offset,
        }

    def _nodes(self) -> Iterator[Scalar]:
        yield from (node for _, node in self.columns)
        if self.where is not None:
            yield self.where
        yield from (one.by for one in self.order)
