"""Rows of a plan: conditions, joins, and groups within a unit."""

from typing import TYPE_CHECKING, Any

from discreet.tables.engines import (
    Call,
    ColumnRef,
    Fold,
    GroupedRows,
    Joined,
    Literal,
    Scan,
    Select,
    UnionRows,
)
from discreet.testing.engines.comparison import Comparison

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.engines import Scalar


def _tables() -> "dict[str, pa.Table]":
    import pyarrow as pa

    visits = {"id": [1, 1, 1, 2, None], "day": ["a", "a", None, "a", "b"], "x": [1, 1, 2, None, 7]}
    days = {"day": ["a", "c", None], "name": ["A", "C", "none"]}
    return {"visits": pa.table(visits), "days": pa.table(days)}


def _column(source: str, name: str) -> "tuple[str, Scalar]":
    return name, ColumnRef(name, source=source)


class Relations(Comparison):
    """What questions read from, as :class:`Select` and :class:`GroupedRows` say."""

    def check_rows(self, rows: Select, *wanted: tuple[Any, ...]) -> None:
        """Compare rows, whatever their order."""
        found = self.read(rows, _tables())
        assert found.column_names == list(rows.names)
        values = [tuple(row.values()) for row in found.to_pylist()]
        assert sorted(values, key=repr) == sorted(wanted, key=repr)

    def test_rows_as_they_are(self) -> None:
        """Repeated rows stay; columns come in the order asked for."""
        some = Select.of("visits", day="day", unit="id")
        self.check_rows(some, ("a", 1), ("a", 1), (None, 1), ("a", 2), ("b", None))

    def test_conditions(self) -> None:
        """All of them must be true; what is NULL is not true."""
        is_small = Call("less", (ColumnRef("x"), Literal(7, "int64")))
        is_a = Call("equal", (ColumnRef("day"), Literal("a", "text")))
        columns = (("x", ColumnRef("x")),)
        self.check_rows(Select(Scan("visits"), columns, (is_small,)), (1,), (1,), (2,))
        self.check_rows(Select(Scan("visits"), columns, (is_small, is_a)), (1,), (1,))

    def test_joins(self) -> None:
        """Rows without a partner are kept on the left, the right, both or none; NULL has none."""
        left = Joined(alias="s0", rows=Select.of("visits", id="id", day="day"))
        on = (Call("equal", (ColumnRef("day", "s0"), ColumnRef("day", "s1"))),)
        days = Select.of("days", day="day", name="name")
        columns = (_column("s0", "id"), _column("s1", "name"))
        partners = [(1, "A"), (1, "A"), (2, "A")]
        inner = Select((left, Joined(alias="s1", rows=days, on=on)), columns)
        self.check_rows(inner, *partners)
        outer = Select((left, Joined(alias="s1", rows=days, kind="left", on=on)), columns)
        self.check_rows(outer, *partners, (1, None), (None, None))
        kept = Select((left, Joined(alias="s1", rows=days, kind="right", on=on)), columns)
        self.check_rows(kept, *partners, (None, "C"), (None, "none"))
        both = Select((left, Joined(alias="s1", rows=days, kind="full", on=on)), columns)
        self.check_rows(both, *partners, (1, None), (None, None), (None, "C"), (None, "none"))

    def test_joins_without_a_condition(self) -> None:
        """All pairs are partners."""
        names = Joined(alias="s0", rows=Select.of("days", name="name"))
        again = Joined(alias="s1", rows=Select.of("days", day="day"))
        pairs = Select((names, again), (_column("s0", "name"), _column("s1", "day")))
        self.check_rows(pairs, *((n, d) for n in ("A", "C", "none") for d in ("a", "c", None)))

    def test_joins_on_the_same(self) -> None:
        """NULL is the same as NULL, where a condition says so."""
        left = Joined(alias="s0", rows=Select.of("visits", id="id", day="day"))
        on = (Call("same", (ColumnRef("day", "s0"), ColumnRef("day", "s1"))),)
        right = Joined(alias="s1", rows=Select.of("days", day="day", name="name"), on=on)
        joined = Select((left, right), (_column("s0", "id"), _column("s1", "name")))
        self.check_rows(joined, (1, "A"), (1, "A"), (2, "A"), (1, "none"))

    def test_unions(self) -> None:
        """Rows of all parts stay, however often they are there."""
        days = Select.of("days", day="day")
        some = UnionRows((days, Select.of("visits", day="day"), UnionRows((days, days))))
        shown = Select((Joined(alias="s0", rows=some),), (_column("s0", "day"),))
        self.check_rows(
            shown, *((day,) for day in ("a", "c", None) * 3), *((day,) for day in "aaab"), (None,)
        )

    def test_groups(self) -> None:
        """NULL is a key like others; folds leave NULLs out, and are NULL or 0 of nothing."""
        x = ColumnRef("x")
        folds = {
            "rows": Fold("count"), "present": Fold("count", x), "kinds": Fold("count_distinct", x),
            "low": Fold("minimum", x), "high": Fold("maximum", x),
        }  # fmt: skip
        inside = Select.of("visits", id="id", day="day", x="x")
        keys = (("id", ColumnRef("id")), ("day", ColumnRef("day")))
        grouped = GroupedRows(inside, by=("id", "day"), columns=(*keys, *folds.items()))
        names = ("id", "day", *folds)
        shown = Select(
            (Joined(alias="s0", rows=grouped),), tuple(_column("s0", name) for name in names)
        )
        self.check_rows(
            shown,
            (1, "a", 2, 2, 1, 1, 1), (1, None, 1, 1, 1, 2, 2), (2, "a", 1, 0, 0, None, None),
            (None, "b", 1, 1, 1, 7, 7),
        )  # fmt: skip

    def test_conditions_of_groups(self) -> None:
        """Only groups whose condition is true are left."""
        several = Call("greater", (Fold("count"), Literal(1, "int64")))
        inside = Select.of("visits", id="id", day="day")
        grouped = GroupedRows(
            inside, by=("id", "day"), columns=(("day", ColumnRef("day")),), having=several
        )
        shown = Select((Joined(alias="s0", rows=grouped),), (_column("s0", "day"),))
        self.check_rows(shown, ("a",))
