"""Run a statement, and compare its answer with the oracle's."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.privacy import Sensitive
from discreet.tables.engines import (
    Call,
    ColumnRef,
    Connection,
    Literal,
    Profile,
    Select,
    Statement,
    Sums,
)
from discreet.testing.engines.made_up import SAMPLE, arrow_table, made_rows
from discreet.testing.engines.oracle import Row, by_unit, expected_profile, expected_sums

if TYPE_CHECKING:
    import pyarrow as pa


class Comparison:
    """What the checks of engines are made of."""

    _rows: Sequence[Row] | None = None
    _connection: Connection

    def connect(self, tables: "dict[str, pa.Table]", /) -> Connection:
        """Return a connection that reads these tables."""
        raise NotImplementedError

    def run(self, statement: Statement, rows: Sequence[Row]) -> "pa.Table":
        """Return the bare answer over a table ``visits`` of these rows."""
        # One connection for statements on the same rows: starting one takes longer than they do.
        if self._rows is not rows:
            self._rows, self._connection = rows, self.connect({"visits": arrow_table(rows)})
        answer = self._connection.aggregate(statement)
        assert isinstance(answer, Sensitive)
        return answer.reveal_without_noise()

    def read(self, rows: Select, tables: "dict[str, pa.Table]") -> "pa.Table":
        """Return bare rows of these tables."""
        with closing(self.connect(tables)) as engine:
            return engine.rows(rows).reveal_without_noise()

    def cells(self, statement: Sums, rows: Sequence[Row]) -> dict[tuple[object, ...], list[int]]:
        """Return the cells by group, after a look at names and types of the columns."""
        import pyarrow as pa

        table = self.run(statement, rows)
        keys = [f"key_{i}" for i in range(len(statement.query.keys))]
        keys += ["place"] * (statement.grid is not None)
        names = [f"cell_{i}" for i in range(sum(family.count for family in statement.cells))]
        assert table.column_names == keys + names
        assert all(table.schema.field(name).type == pa.int64() for name in names)
        listed = table.to_pylist()
        found = {tuple(row[key] for key in keys): [row[name] for name in names] for row in listed}
        assert len(found) == len(listed), "a group appears twice"
        return found

    def check(self, statement: Sums, rows: Sequence[Row] | None = None) -> None:
        """Compare with the oracle. Groups: only where none is dropped."""
        rows = SAMPLE if rows is None else rows
        found, wanted = self.cells(statement, rows), expected_sums(statement, rows)
        zeros = [(0, 0)] * sum(family.count for family in statement.cells)
        # Groups may be missing or there without need, unless they decide what is shown.
        if statement.least is not None and statement.query.keys:
            assert set(found) == set(wanted)
        for group in set(found) | set(wanted):
            intervals, cells = wanted.get(group, zeros), found.get(group, [0] * len(zeros))
            for cell, (low, high) in zip(cells, intervals, strict=True):
                assert low <= cell <= high, f"group {group}: {cell} is not in [{low}, {high}]"

    def check_profile(self, statement: Profile, rows: Sequence[Row] | None = None) -> None:
        """Compare a profile with the oracle."""
        rows = SAMPLE if rows is None else rows
        table = self.run(statement, rows)
        assert table.column_names == ["bin", "units"]
        found = {row["bin"]: row["units"] for row in table.to_pylist() if row["units"]}
        assert found == expected_profile(statement, rows)

    def check_units_add_up(self, statement: Sums) -> None:
        """Check that each unit adds what it would add alone: the heart of every sensitivity."""
        rows = made_rows(units=5)
        total: dict[tuple[object, ...], list[int]] = {}
        for unit in by_unit(rows):
            assert isinstance(unit, int)
            is_own = Call("equal", (ColumnRef("unit"), Literal(unit, "int64")))
            alone = replace(statement.query.rows, where=(is_own,))
            own = replace(statement, query=replace(statement.query, rows=alone))
            for group, cells in self.cells(own, rows).items():
                before = total.get(group, [0] * len(cells))
                total[group] = [a + b for a, b in zip(before, cells, strict=True)]
        assert {g: c for g, c in self.cells(statement, rows).items() if any(c)} == {
            g: c for g, c in total.items() if any(c)
        }
