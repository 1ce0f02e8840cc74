"""What an engine is asked to compute: bounded, exact integer aggregates; never raw rows."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final, overload

from discreet.tables.model.aggregates import CELLS, CellsKind
from discreet.tables.model.bounds import Bounding, Norm
from discreet.tables.model.query import Query

__all__ = [
    "Cells",
    "Combinations",
    "Distinct",
    "ValueGrid",
    "Profile",
    "Statement",
    "Sums",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Numbers that one row adds to, chosen so that their sizes add up to at most 1 row.

    ``values`` are positions in :attr:`Query.values`, ``bounds`` theirs: values are clamped to them.
    With t = (x - low) / (high - low), in WEIGHT_STEPS rounded towards zero, a row adds

    - ``rows``: (1);
    - ``present``: (1) if x is not NULL;
    - ``sum``: (x / max(-low, high, 0)), negative where x is;
    - ``linear``: (1 - t, t);
    - ``quadratic``: ((1 - t)^2, 2 t (1 - t), t^2), so that their sums a, b, c give n = a + b + c,
      the sum of t = b / 2 + c and the sum of t^2 = c;
    - ``moments``: for two values, the nine products of their quadratic cells: (a a', a b', ...).

    Two kinds are not sums over rows but have one number for a unit in a group, whose norm over
    groups ``own`` bounds: by a weight that is the unit's for these cells alone, and one row is

    - ``units``: (1), a unit with a row in the group;
    - ``total``: the sum over the unit's rows of x / max(-low, high, 0), each in WEIGHT_STEPS and
      rounded to the nearest step (halves up).

    All but those of ``sum`` and ``total`` are never negative, and the whole numbers of steps of one
    row add up to at most WEIGHT_STEPS.

    ``with_absent`` adds one more cell, last: 1 if the value (either value) is NULL. Otherwise such
    a row adds nothing.

    >>> Cells(kind="linear", values=(0,), bounds=((Fraction(0), Fraction(1)),)).count
    2
    """

    kind: CellsKind
    values: tuple[int, ...] = ()
    bounds: tuple[tuple[Fraction, Fraction], ...] = ()
    with_absent: bool = False
    own: Norm | None = None

    @property
    def is_signed(self) -> bool:
        """Whether they may be negative."""
        return self.kind in ("sum", "total") and self.bounds[0][0] < 0

    @property
    def count(self) -> int:
        """How many cells there are."""
        return CELLS[self.kind] + self.with_absent


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ValueGrid:
    """Group rows also by where a value lies: one of ``points`` numbers from low to high.

    The place of x, clamped, is floor((x - low) / (high - low) * (points - 1) + 1/2). Rows without a
    value are left out, before units are bounded.

    >>> ValueGrid(value=0, low=Fraction(0), high=Fraction(120), points=121).points
    121
    """

    value: int
    low: Fraction
    high: Fraction
    points: int


@final
@dataclass(frozen=True, slots=True)
class Combinations(Sequence[tuple[object, ...]]):
    """All combinations of a value from each of the ``lists``, of which nothing else is kept.

    >>> groups = Combinations(((1, 2), (False, True)))
    >>> len(groups), groups[2], groups[-1:], list(groups)
    (4, (2, False), [(2, True)], [(1, False), (1, True), (2, False), (2, True)])
    """

    lists: tuple[tuple[object, ...], ...]

    def __len__(self) -> int:
        return math.prod(map(len, self.lists))

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return itertools.product(*self.lists)

    @overload
    def __getitem__(self, index: int, /) -> tuple[object, ...]: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[tuple[object, ...]]: ...
    def __getitem__(
        self, index: int | slice, /
    ) -> tuple[object, ...] | Sequence[tuple[object, ...]]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        found = []
        for values in reversed(self.lists):
            places, place = divmod(places, len(values))
            found.append(values[place])
        return tuple(reversed(found))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Add up cells by group, each unit bounded.

    The result has the columns key_0, ..., then ``place`` (int64) if there is a ``grid``, then
    cell_0, ... (int64, clamped at +-2**62), the cells of all ``cells`` in order. A row of weight w
    adds w times its cells times WEIGHT_STEPS; the product is rounded towards zero for each unit
    and group. ``bounding`` of None: every row is a unit of its own (``unit_is_row``), and all
    weights are 1; or all cells have a bound of their ``own``.

    Rows that cannot add to any cell, since they lack a value that all cells are of, are left out
    *before* units are bounded (see ``needed``): they take nothing off the unit's other rows.

    ``groups``, where given, are the only combinations of keys that count: other rows are left out
    *before* units are bounded. There may be millions of them: take them as tables, not as text, and
    :class:`Combinations` as one table for each of their lists.
    A group without rows may be missing from the result.
    ``least`` leaves out a unit's contribution to a group where its weighted number of rows is
    below it (for a Norm only). Where the first cells are ``units``, only what it adds to these is
    left out. Groups that nobody is left in must not appear.
    ``salt`` makes the choice of groups random.

    >>> from discreet.tables.model.relation import Select
    >>> people = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
    >>> Sums(query=people, cells=(Cells(kind="rows"),), bounding=None, salt="").groups is None
    True
    """

    query: Query
    cells: tuple[Cells, ...]
    bounding: Bounding | None
    salt: str
    groups: Sequence[tuple[object, ...]] | None = None
    grid: ValueGrid | None = None
    least: Fraction | None = None

    @property
    def needed(self) -> tuple[int, ...]:
        """The values without which a row adds nothing.

        >>> from discreet.tables.model.relation import Select
        >>> people = Query(rows=Select.of("people", unit="id", value_0="age"), tables=("people",))
        >>> aged = Cells(kind="present", values=(0,))
        >>> Sums(query=people, cells=(aged,), bounding=Norm(limit=1, order=1), salt="").needed
        (0,)
        """
        found = set(self.cells[0].values) if self.cells else set[int]()
        for one in self.cells:
            found &= set() if one.with_absent else set(one.values)
        return tuple(sorted(found | ({self.grid.value} if self.grid is not None else set())))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Count the distinct values in each group, each unit naming at most ``most`` of them in all.

    Of a unit's distinct pairs (group, value) those with the lowest salted hash count. The result
    has the columns key_0, ..., cell_0 (int64, plain counts, not in WEIGHT_STEPS). With ``bounds``
    the distinct values are added up instead, in WEIGHT_STEPS of the largest, each clamped and
    rounded as in cells of kind ``sum``.

    Claim: a unit moves the counts, over all groups together, by at most ``most``, and the sums by
    at most ``most`` times WEIGHT_STEPS.

    Why: which pairs a unit names depends on its own rows and the salt alone. So a unit that comes
    or goes adds or takes at most ``most`` pairs from those that anybody names, and each of them
    is 1 in one count, and at most WEIGHT_STEPS in one sum.

    >>> from discreet.tables.model.relation import Select
    >>> visits = Query(rows=Select.of("visits", unit="user_id", value_0="page"), tables=("visits",))
    >>> Distinct(query=visits, value=0, most=3, salt="").most
    3
    """

    query: Query
    value: int
    most: int
    salt: str
    bounds: tuple[Fraction, Fraction] | None = None
    groups: Sequence[tuple[object, ...]] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Count units by the size of something about each unit: one bin per unit, nothing more.

    ``of`` is what is measured: ``rows`` (of a unit in all: the L1 norm of its counts), ``norm``
    (the L2 norm of its counts over groups), ``pairs`` (distinct pairs of group and ``value``), or
    the ``largest`` or ``smallest`` ``value`` of the unit, or the norm of order ``order`` of its
    ``total`` over groups: of cells of that kind, with these ``bounds``, in rows of the largest
    value. ``edges`` increase; the bin of y is the
    number of edges below y (so bin 0 holds y <= edges[0]). Units without a value are left out. The
    result has the columns bin, units (both int64); empty bins may be missing. ``salt`` chooses the
    rows that take part in joins.

    >>> from discreet.tables.model.relation import Select
    >>> people = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
    >>> len(Profile(query=people, of="rows", edges=(Fraction(1), Fraction(10))).edges) + 1  # bins
    3
    """

    query: Query
    of: Literal["rows", "norm", "pairs", "largest", "smallest", "total"]
    edges: tuple[Fraction, ...]
    value: int | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    order: Literal[1, 2] = 1
    groups: Sequence[tuple[object, ...]] | None = None
    once: bool = False
    salt: str = ""


Statement = Sums | Distinct | Profile
