"""How many rows of one unit a join makes, and which."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from discreet.tables.engines import Call, ColumnRef, Joined, JoinKind, Select
from discreet.testing.engines.comparison import Comparison

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.engines import Scalar

_MOST = 100


def _tables(*units: int) -> "dict[str, pa.Table]":
    """Return rows of some units: number 1 has 30 and 40 of them, 2 has 3 and 5, 3 has 2 and 70."""
    import pyarrow as pa

    def table(counts: dict[int, int], *, is_same: bool = False) -> "pa.Table":
        rows = [(u, 0 if is_same else i) for u in units for i in range(counts[u])]
        return pa.table({"unit": [u for u, _ in rows], "x": [x for _, x in rows]})

    return {
        "a": table({1: 30, 2: 3, 3: 2}),
        "b": table({1: 40, 2: 5, 3: 70}),
        "same": table({1: 40, 2: 5, 3: 70}, is_same=True),
        "nobody": pa.table({"unit": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}),
        "days": pa.table({"x": [0, 0, 0, 0, 1, 2], "day": list("abcdef")}),
    }


def _part(alias: str, table: str, *on: "Scalar", kind: JoinKind = "inner") -> Joined:
    rows = Select.of(table, day="day", x="x") if table == "days" else None
    rows = rows or Select.of(table, unit="unit", x="x")
    return Joined(alias=alias, rows=rows, kind=kind, on=on)


def _equal(column: str, one: str, other: str) -> Call:
    return Call("equal", (ColumnRef(column, one), ColumnRef(column, other)))


def _joined(*parts: Joined, most: int = _MOST) -> Select:
    first = next(part.alias for part in parts if "unit" in part.rows.names)
    columns = [("unit", ColumnRef("unit", first))]
    columns += [(f"x{i}", ColumnRef("x", part.alias)) for i, part in enumerate(parts)]
    return Select(parts, tuple(columns), (), most)


class Crowds(Comparison):
    """Rows of one unit, bounded before they meet."""

    def joined_rows(self, select: Select, *units: int) -> "Counter[tuple[Any, ...]]":
        """Return joined rows, and how often each of them is there."""
        found = self.read(select, _tables(*units))
        return Counter(tuple(row.values()) for row in found.to_pylist())

    def check_counts(self, select: Select, wanted: dict[int, int]) -> None:
        """Compare how many rows units have, together and each for itself."""
        found = self.joined_rows(select, 1, 2, 3)
        counts: Counter[Any] = Counter()
        for row, count in found.items():
            counts[row[0]] += count
        assert counts == wanted
        alone: Counter[tuple[Any, ...]] = Counter()
        for unit in (1, 2, 3):
            alone += self.joined_rows(select, unit)
        assert found == alone, "which rows are joined depends on other units"

    def test_crowded_units(self) -> None:
        """Where both sides are large both are cut, and a large one alone only as far as needed."""
        both = _joined(_part("s0", "a"), _part("s1", "b", _equal("unit", "s0", "s1")))
        self.check_counts(both, {1: 10 * 10, 2: 3 * 5, 3: 2 * 50})

    def test_crowds_of_equal_rows(self) -> None:
        """Rows that cannot be told apart are cut to the same number."""
        both = _joined(_part("s0", "same"), _part("s1", "same", _equal("unit", "s0", "s1")))
        self.check_counts(both, {1: 10 * 10, 2: 5 * 5, 3: 10 * 10})

    def test_crowds_of_three(self) -> None:
        """The k-th root of all, where k are large."""
        three = _joined(
            _part("s0", "b"),
            _part("s1", "a", _equal("unit", "s0", "s1")),
            _part("s2", "b", _equal("unit", "s0", "s2")),
        )
        self.check_counts(three, {1: 4**3, 2: 5 * 3 * 5, 3: 4 * 2 * 4})

    def test_crowds_in_left_joins(self) -> None:
        """A unit without partners keeps all of its rows; one row without partners counts one."""
        on = (_equal("unit", "s0", "s1"), _equal("x", "s0", "s1"))
        left = _joined(_part("s0", "b"), _part("s1", "a", *on, kind="left"))
        found = self.joined_rows(left, 1, 2, 3)
        counts = Counter(row[0] for row in found.elements())
        assert counts == {1: 10, 2: 5, 3: 50}

    def test_crowds_in_right_and_full_joins(self) -> None:
        """Units that only the right side has are cut as well; a full join may add rows up."""
        on = (_equal("unit", "s0", "s1"), _equal("x", "s0", "s1"))
        unit = Call("coalesce", (ColumnRef("unit", "s0"), ColumnRef("unit", "s1")))
        kinds: dict[JoinKind, dict[int, int]] = {
            "right": {1: 10, 2: 5, 3: 50},
            "full": {1: 14, 2: 5, 3: 27},
        }
        for kind, counts in kinds.items():
            parts = (_part("s0", "a"), _part("s1", "b", *on, kind=kind))
            columns = (("unit", unit), ("x", ColumnRef("x", "s1")))
            self.check_most(Select(parts, columns, (), _MOST), counts)
        parts = (
            Joined(alias="s0", rows=Select.of("nobody", unit="unit", x="x")),
            _part("s1", "b", *on, kind="right"),
        )
        one = Select(parts, (("unit", ColumnRef("unit", "s1")),), (), 20)
        self.check_most(one, {1: 20, 2: 5, 3: 20})

    def check_most(self, select: Select, most: dict[int, int]) -> None:
        """Check that no unit has more rows, and that each has the same alone."""
        found = self.joined_rows(select, 1, 2, 3)
        counts = Counter(row[0] for row in found.elements())
        assert all(0 < counts[unit] <= most[unit] for unit in most)
        alone: Counter[tuple[Any, ...]] = Counter()
        for unit in (1, 2, 3):
            alone += self.joined_rows(select, unit)
        assert found == alone, "which rows are joined depends on other units"

    def test_crowds_of_public_partners(self) -> None:
        """A row has at most 4 partners of the same x, and 6 of any."""
        days = _joined(_part("s0", "b"), _part("s1", "days", _equal("x", "s0", "s1")))
        found = self.joined_rows(days, 1, 2, 3)
        assert 0 < sum(found.values()) <= 3 * _MOST
        every = _joined(_part("s0", "days"), _part("s1", "b"))
        self.check_counts(every, {1: 6 * 16, 2: 6 * 5, 3: 6 * 16})

    def test_crowds_where_partners_are_too_many(self) -> None:
        """A unit keeps at least one row."""
        every = _joined(_part("s0", "days"), _part("s1", "b"), most=5)
        self.check_counts(every, {1: 6, 2: 6, 3: 6})
