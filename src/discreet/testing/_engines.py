"""One suite for all engines: whatever runs the statements must give these integers."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.privacy import Sensitive
from discreet.tables.engines import Engine
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm
from discreet.tables.model.query import Key, Query, Value
from discreet.tables.model.statements import (
    Cells,
    Distinct,
    Place,
    Profile,
    Statement,
    Sums,
)
from discreet.testing._engine_oracle import (
    Row,
    by_unit,
    distinct_pairs,
    expected_profile,
    expected_sums,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EngineConformance"]

ROWS = Cells(kind="rows")
PRESENT = Cells(kind="present", values=(0,), with_absent=True)
UNIT_RANGE = (Fraction(0), Fraction(1))
SUM = Cells(kind="sum", values=(0,), bounds=((Fraction(-10), Fraction(100)),))
LINEAR = Cells(kind="linear", values=(0,), bounds=((Fraction(-10), Fraction(100)),))
QUADRATIC = Cells(kind="quadratic", values=(0,), bounds=((Fraction(-10), Fraction(100)),))
MOMENTS = Cells(
    kind="moments",
    values=(0, 1),
    bounds=((Fraction(-10), Fraction(100)), UNIT_RANGE),
    with_absent=True,
)
FAMILIES = (
    ROWS,
    PRESENT,
    SUM,
    LINEAR,
    replace(LINEAR, with_absent=True),
    QUADRATIC,
    replace(QUADRATIC, with_absent=True),
    MOMENTS,
)
NORMS: tuple[Bounding, ...] = tuple(
    Norm(limit=limit, order=order)
    for limit in (1, Fraction(1, 2), Fraction(7, 2), 1000)
    for order in (1, 2)
)


def _query(keys: int = 1, values: int = 2, *, unit_is_row: bool = False) -> Query:
    names = [] if unit_is_row else ["unit"]
    names += [f"key_{i}" for i in range(keys)] + [f"value_{i}" for i in range(values)]
    return Query(
        rows=f"SELECT {', '.join(names) or '1 AS one'} FROM visits",  # noqa: S608
        keys=tuple(
            Key(name=f"key_{i}", type=("VARCHAR", "BIGINT")[i], values=None) for i in range(keys)
        ),
        values=tuple(Value(text=f"value_{i}", bounds=None) for i in range(values)),
        aggregates=(),
        output="",
        names=(),
        tables=("visits",),
        unit_is_row=unit_is_row,
    )


def _rows(seed: int = 1, units: int = 12, most: int = 9, keys: int = 4) -> list[Row]:
    """Return a small table with everything that tables have: NULLs, infinities, repeated rows."""
    dice = random.Random(seed)  # noqa: S311 - makes up data, no noise
    values = [None, math.inf, -math.inf, 1e308, -1e308, 0.0, -0.0, 5e-324, 100.0, -10.0]
    rows: list[Row] = []
    for unit in range(units):
        for _ in range(dice.randint(1, most)):
            rows.append(
                {
                    "unit": unit,
                    "key_0": dice.choice([None, "", *"abcdefghij"[:keys]]),
                    "key_1": dice.choice([None, 0, -1, 2**62]),
                    "value_0": dice.choice([*values, dice.uniform(-20, 120)]),
                    "value_1": dice.choice([None, 0.25, 1.0, dice.random()]),
                }
            )
    return rows


_ROWS = _rows()


def _table(rows: Sequence[Row]) -> "pa.Table":
    import pyarrow as pa

    kinds = {
        "unit": pa.int64(),
        "key_0": pa.string(),
        "key_1": pa.int64(),
        "value_0": pa.float64(),
        "value_1": pa.float64(),
    }
    return pa.table({name: pa.array([r[name] for r in rows], kind) for name, kind in kinds.items()})


def _sums(
    *cells: Cells,
    bounding: Bounding | None = None,
    keys: int = 1,
    salt: str = "salt",
    groups: tuple[tuple[object, ...], ...] | None = None,
    place: Place | None = None,
    once: bool = False,
    least: Fraction | None = None,
) -> Sums:
    return Sums(
        query=_query(keys, unit_is_row=bounding is None),
        cells=cells or (ROWS,),
        bounding=bounding,
        salt=salt,
        groups=groups,
        place=place,
        once=once,
        least=least,
    )


PLACE = Place(value=0, low=Fraction(-10), high=Fraction(100), points=12)


class EngineConformance:
    """Check that an engine computes what statements say, to the last integer.

    Derive a class for pytest from it and say how to make an engine over a table. Everything is
    compared with a slow computation unit by unit that knows no SQL.

    >>> from discreet.tables.engines import DuckDBEngine
    >>> class TestDuckDB(EngineConformance):
    ...     def make_engine(self, tables):
    ...         return DuckDBEngine(tables)
    >>> TestDuckDB().test_counts_of_one_group()
    """

    def make_engine(self, tables: "dict[str, pa.Table]", /) -> Engine:
        """Return an engine that reads these tables."""
        raise NotImplementedError

    _rows: Sequence[Row] | None = None
    _engine: Engine

    # What the tests are made of.

    def run(self, statement: Statement, rows: Sequence[Row]) -> "pa.Table":
        """Return the bare answer over a table ``visits`` of these rows."""
        # One engine for statements on the same rows: starting one takes longer than they do.
        if self._rows is not rows:
            self._rows, self._engine = rows, self.make_engine({"visits": _table(rows)})
        answer = self._engine.aggregate(statement)
        assert isinstance(answer, Sensitive)
        return answer.reveal_without_noise()

    def cells(self, statement: Sums, rows: Sequence[Row]) -> dict[tuple[object, ...], list[int]]:
        """Return the cells by group, after a look at names and types of the columns."""
        import pyarrow as pa

        table = self.run(statement, rows)
        keys = [f"key_{i}" for i in range(len(statement.query.keys))]
        keys += ["place"] * (statement.place is not None)
        names = [f"cell_{i}" for i in range(sum(family.count for family in statement.cells))]
        assert table.column_names == keys + names
        assert all(table.schema.field(name).type == pa.int64() for name in names)
        listed = table.to_pylist()
        found = {tuple(row[key] for key in keys): [row[name] for name in names] for row in listed}
        assert len(found) == len(listed), "a group appears twice"
        return found

    def check(self, statement: Sums, rows: Sequence[Row] | None = None) -> None:
        """Compare with the oracle. Groups: only where none is dropped."""
        rows = _ROWS if rows is None else rows
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
        rows = _ROWS if rows is None else rows
        table = self.run(statement, rows)
        assert table.column_names == ["bin", "units"]
        found = {row["bin"]: row["units"] for row in table.to_pylist() if row["units"]}
        assert found == expected_profile(statement, rows)

    def check_units_add_up(self, statement: Sums) -> None:
        """Check that each unit adds what it would add alone: the heart of every sensitivity."""
        rows = _rows(units=5)
        total: dict[tuple[object, ...], list[int]] = {}
        for unit in by_unit(rows):
            alone = f"{statement.query.rows} WHERE unit = {unit}"
            own = replace(statement, query=replace(statement.query, rows=alone))
            for group, cells in self.cells(own, rows).items():
                before = total.get(group, [0] * len(cells))
                total[group] = [a + b for a, b in zip(before, cells, strict=True)]
        assert {g: c for g, c in self.cells(statement, rows).items() if any(c)} == {
            g: c for g, c in total.items() if any(c)
        }

    # Counts.

    def test_counts_of_one_group(self) -> None:
        """Small units count in full, large ones up to the limit less a hair."""
        row = {"key_0": "a", "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "unit": unit} for unit in (1, 2, 2, 2)]
        found = self.cells(_sums(bounding=Norm(limit=2, order=1), keys=0), rows)
        assert found == {(): [3 * WEIGHT_STEPS - 1]}

    def test_counts_by_norm(self) -> None:
        """All limits and orders."""
        for bounding in NORMS:
            self.check(_sums(bounding=bounding))

    def test_counts_by_norm_without_keys(self) -> None:
        """One group: the norm is the count."""
        for bounding in NORMS:
            self.check(_sums(bounding=bounding, keys=0))

    def test_counts_by_norm_with_two_keys(self) -> None:
        """Two keys, NULLs among both."""
        for bounding in NORMS:
            self.check(_sums(bounding=bounding, keys=2))

    def test_counts_of_rows(self) -> None:
        """Every row a unit of its own."""
        for keys in (0, 1, 2):
            self.check(_sums(keys=keys))

    def test_counts_of_many_groups_kept(self) -> None:
        """More groups allowed than there are: nothing is dropped, rows are weighed."""
        for rows in (1, 2, 1000):
            self.check(_sums(bounding=Groups(groups=50, rows=rows), keys=2))

    def test_counts_of_groups_without_keys(self) -> None:
        """One group: nothing to choose."""
        for rows in (1, 3):
            self.check(_sums(bounding=Groups(groups=1, rows=rows), keys=0))

    def test_once(self) -> None:
        """A unit counts once in each group."""
        for bounding in (*NORMS, Groups(groups=50, rows=1)):
            for keys in (0, 1):
                self.check(_sums(ROWS, PRESENT, bounding=bounding, keys=keys, once=True))

    def test_an_exact_limit_is_no_clipping(self) -> None:
        """A norm of exactly the limit keeps the full weight: 3, 4 and 5."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: Sequence[Row] = [{**row, "key_0": "a"}] * 3 + [{**row, "key_0": "b"}] * 4
        found = self.cells(_sums(bounding=Norm(limit=5, order=2)), rows)
        assert found == {("a",): [3 * WEIGHT_STEPS], ("b",): [4 * WEIGHT_STEPS]}

    def test_a_unit_of_many_rows(self) -> None:
        """1e5 rows of one unit, next to a unit of one row."""
        row = {"key_0": "a", "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: Sequence[Row] = [{**row, "unit": 1}] * 100_000 + [{**row, "unit": 2}]
        for bounding in (Norm(limit=3, order=1), Norm(limit=3, order=2), Groups(groups=2, rows=3)):
            self.check(_sums(ROWS, LINEAR, bounding=bounding), rows)

    # Cells of values.

    def test_cells_of_rows(self) -> None:
        """All families where every row is a unit."""
        for family in FAMILIES:
            self.check(_sums(family))

    def test_cells_of_rows_without_keys(self) -> None:
        """All families, one group."""
        for family in FAMILIES:
            self.check(_sums(family, keys=0))

    def test_cells_by_first_norm(self) -> None:
        """All families, sums bounded."""
        for family in FAMILIES:
            self.check(_sums(family, bounding=Norm(limit=Fraction(5, 2), order=1)))

    def test_cells_by_second_norm(self) -> None:
        """All families, roots of sums of squares bounded."""
        for family in FAMILIES:
            self.check(_sums(family, bounding=Norm(limit=Fraction(5, 2), order=2)))

    def test_cells_by_norm_without_keys(self) -> None:
        """All families, one group."""
        for family in FAMILIES:
            self.check(_sums(family, bounding=Norm(limit=3, order=2), keys=0))

    def test_cells_by_groups(self) -> None:
        """All families, rows weighed in each group."""
        for family in FAMILIES:
            self.check(_sums(family, bounding=Groups(groups=50, rows=2)))

    def test_families_together(self) -> None:
        """Several families in one statement keep their order."""
        self.check(_sums(*FAMILIES, bounding=Norm(limit=2, order=2)))
        self.check(_sums(*reversed(FAMILIES), bounding=Norm(limit=2, order=1)))
        self.check(_sums(*FAMILIES))

    def test_one_bound_for_all_values(self) -> None:
        """Bounds of no width: t is 0."""
        for kind in ("sum", "linear", "quadratic"):
            for bound in (Fraction(0), Fraction(7)):
                family = Cells(kind=kind, values=(0,), bounds=((bound, bound),))
                self.check(_sums(family, bounding=Norm(limit=2, order=2)))

    def test_negative_bounds(self) -> None:
        """Both bounds below zero: the largest size is that of the lower one."""
        for kind in ("sum", "linear", "quadratic"):
            family = Cells(kind=kind, values=(0,), bounds=((Fraction(-8), Fraction(-2)),))
            self.check(_sums(family, bounding=Norm(limit=2, order=2)))

    def test_tiny_and_huge_bounds(self) -> None:
        """Bounds up to the last double, and beyond it."""
        for low, high in ((-(10**307), 10**307), (-(10**308), 10**308), (0, Fraction(1, 10**300))):
            pair = (Fraction(low), Fraction(high))
            for kind in ("sum", "linear", "quadratic"):
                family = Cells(kind=kind, values=(0,), bounds=(pair,))
                self.check(_sums(family, bounding=Norm(limit=3, order=1)))

    def test_row_cells_add_up_to_one_row(self) -> None:
        """Families with an absent cell share out each row completely, or nearly so."""
        for family in FAMILIES:
            if family.kind in ("rows", "sum") or not family.with_absent:
                continue
            rows = _rows()
            (cells,) = self.cells(_sums(family, keys=0), rows).values()
            assert all(cell >= 0 for cell in cells)
            assert len(rows) * (WEIGHT_STEPS - 9) <= sum(cells) <= len(rows) * WEIGHT_STEPS

    # Which rows count.

    def test_listed_groups(self) -> None:
        """Other rows are left out before units are bounded; NULL is a key like others."""
        for groups in ((("a",), (None,)), ((None,),), (("a",), ("nobody",)), (("",),), ()):
            for bounding in (None, Norm(limit=2, order=2), Groups(groups=9, rows=2)):
                self.check(_sums(bounding=bounding, groups=groups))

    def test_listed_groups_of_two_keys(self) -> None:
        """All combinations, and a list that is no product."""
        crossed = tuple((a, b) for a in ("a", None) for b in (0, 2**62, None))
        ragged = (("a", 0), (None, -1), ("b", None), (None, None), ("c", 2**62))
        for groups in (crossed, ragged):
            for bounding in (None, Norm(limit=1, order=1), Groups(groups=9, rows=1)):
                self.check(_sums(bounding=bounding, groups=groups, keys=2))

    def test_listed_groups_in_quotes(self) -> None:
        """Keys that look like SQL are just keys."""
        rows = [{**row, "key_0": "a' OR '1'='1"} for row in _rows()]
        for key in ("a' OR '1'='1", "a", "%"):
            self.check(_sums(bounding=Norm(limit=2, order=2), groups=((key,),)), rows)

    def test_many_listed_groups(self) -> None:
        """A thousand keys."""
        groups = (*((f"key {i}",) for i in range(1000)), ("a",), ("b",))
        self.check(_sums(bounding=Norm(limit=2, order=2), groups=groups))

    def test_rows_of_nobody(self) -> None:
        """Rows without a unit never count, however they are bounded."""
        rows = _rows() + [{**row, "unit": None} for row in _rows(seed=2)]
        for bounding in (*NORMS, Groups(groups=50, rows=2), Groups(groups=1, rows=1)):
            for keys in (0, 1):
                if bounding != Groups(groups=1, rows=1) or keys == 0:
                    self.check(_sums(LINEAR, bounding=bounding, keys=keys), rows)
        assert self.cells(_sums(bounding=Groups(groups=1, rows=1)), rows[-5:]) == {}

    def test_no_rows(self) -> None:
        """An empty table has no groups, and zeros where there are no keys."""
        rows: list[Row] = []
        for bounding in (None, Norm(limit=1, order=1), Norm(limit=1, order=2)):
            for family in FAMILIES:
                self.check(_sums(family, bounding=bounding), rows)
                self.check(_sums(family, bounding=bounding, keys=0), rows)
        self.check(_sums(bounding=Groups(groups=1, rows=1)), rows)
        self.check(_sums(bounding=Norm(limit=1, order=1), least=Fraction(1, 2)), rows)

    def test_order_of_rows(self) -> None:
        """Rows in another order, and other units' rows, change nothing."""
        rows = _rows(units=30)
        shuffled = list(rows)
        random.Random(3).shuffle(shuffled)  # noqa: S311 - makes up data, no noise
        for bounding in (None, Norm(limit=2, order=2), Groups(groups=2, rows=2)):
            statement = _sums(*FAMILIES, bounding=bounding)
            assert self.cells(statement, rows) == self.cells(statement, shuffled)

    # Bounding by ranks.

    def test_a_unit_has_at_most_k_groups(self) -> None:
        """Alone, a unit shows its kept groups: as many as allowed, each with the right cells."""
        for own in by_unit(_rows(units=6)).values():
            for most in (1, 2, 3):
                statement = _sums(ROWS, LINEAR, bounding=Groups(groups=most, rows=2), keys=2)
                found, wanted = self.cells(statement, own), expected_sums(statement, own)
                assert len(found) == min(most, len(wanted))
                for group, cells in found.items():
                    for cell, (low, high) in zip(cells, wanted[group], strict=True):
                        assert low <= cell <= high

    def test_ranks_depend_on_the_salt(self) -> None:
        """With 60 salts each of two groups is chosen at some time, but for 1 in 2**58 runs."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "key_0": key} for key in ("a", "b")]
        engine = self.make_engine({"visits": _table(rows)})
        chosen = set()
        for salt in range(60):
            statement = _sums(bounding=Groups(groups=1, rows=1), salt=f"salt {salt}")
            chosen |= set(engine.aggregate(statement).reveal_without_noise()["key_0"].to_pylist())
        assert chosen == {"a", "b"}

    def test_every_group_has_the_same_chance(self) -> None:
        """Each of 40,000 units keeps one of its 8 groups, or values: all of them equally often.

        Pearson's statistic of a fair choice is above 62.8 with a chance of 4e-11 (chi-square, 7
        degrees of freedom), so that the 6 statistics raise a false alarm in one of 4e9 runs. Were
        one group chosen a fifth more often than the others, it would be 174 on average.
        """
        import pyarrow as pa

        units, keys = 40_000, "abcdefgh"
        columns = {
            "unit": [u for u in range(units) for _ in keys],
            "key_0": list(keys) * units,
            "key_1": [0, 1] * (units * len(keys) // 2),
            "value_0": [float(i) for i in range(units * len(keys))],
            "value_1": [0.5] * (units * len(keys)),
        }
        engine = self.make_engine({"visits": pa.table(columns)})
        for salt in ("one", "two"):
            for statement in (
                _sums(bounding=Groups(groups=1, rows=1), salt=salt),
                _sums(bounding=Groups(groups=1, rows=1), keys=2, salt=salt),
                Distinct(query=_query(1), value=0, most=1, salt=salt),
            ):
                found = engine.aggregate(statement).reveal_without_noise()
                scale = 1 if isinstance(statement, Distinct) else WEIGHT_STEPS
                counts = [cell // scale for cell in found["cell_0"].to_pylist()]
                assert (len(counts), sum(counts)) == (len(keys), units)
                fair = units / len(keys)
                assert sum((count - fair) ** 2 / fair for count in counts) < 62.8

    def test_ranks_differ_between_units(self) -> None:
        """Units choose on their own: 60 units do not all take the same of two groups."""
        row = {"key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "unit": u, "key_0": k} for u in range(60) for k in ("a", "b")]
        found = self.cells(_sums(bounding=Groups(groups=1, rows=1)), rows)
        assert sum(cells[0] for cells in found.values()) == 60 * WEIGHT_STEPS
        assert set(found) == {("a",), ("b",)}

    def test_the_same_salt_chooses_the_same(self) -> None:
        """An answer can be computed again."""
        statement = _sums(*FAMILIES, bounding=Groups(groups=2, rows=2), keys=2)
        assert self.cells(statement, _rows()) == self.cells(statement, _rows())

    # Units add up: their integers depend on nothing but their own rows.

    def test_units_add_up_by_norm(self) -> None:
        """Both norms."""
        for bounding in (Norm(limit=2, order=1), Norm(limit=2, order=2)):
            self.check_units_add_up(_sums(*FAMILIES, bounding=bounding))

    def test_units_add_up_by_groups(self) -> None:
        """Ranks of one unit do not depend on other units."""
        self.check_units_add_up(_sums(*FAMILIES, bounding=Groups(groups=2, rows=2), keys=2))

    def test_units_add_up_once(self) -> None:
        """Units counted once."""
        for bounding in (Norm(limit=2, order=2), Groups(groups=2, rows=1)):
            self.check_units_add_up(_sums(ROWS, bounding=bounding, keys=2, once=True))

    def test_units_add_up_at_places(self) -> None:
        """Units at places."""
        for bounding in (Norm(limit=2, order=1), Groups(groups=2, rows=1)):
            self.check_units_add_up(_sums(ROWS, bounding=bounding, place=PLACE))

    def test_units_add_up_with_least(self) -> None:
        """Units whose small contributions are left out."""
        self.check_units_add_up(_sums(bounding=Norm(limit=2, order=1), least=Fraction(2, 7)))

    # Small contributions, and places.

    def test_least(self) -> None:
        """Contributions below it are left out, and so are groups that nobody is left in."""
        for bounding in (Norm(limit=2, order=1), Norm(limit=2, order=2)):
            for least in (Fraction(1, 3), Fraction(3, 5), Fraction(1, 1000)):
                self.check(_sums(ROWS, LINEAR, bounding=bounding, keys=2, least=least))
                self.check(_sums(ROWS, bounding=bounding, keys=0, least=least))
                self.check(_sums(ROWS, bounding=bounding, once=True, least=least))

    def test_least_that_is_just_reached(self) -> None:
        """A full row reaches 1, and a clipped one does not."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "key_0": "a"}, {**row, "key_0": "b"}]
        full = _sums(bounding=Norm(limit=2, order=1), least=Fraction(1))
        assert len(self.cells(full, rows)) == 2
        clipped = replace(full, bounding=Norm(limit=Fraction(199, 100), order=1))
        assert self.cells(clipped, rows) == {}

    def test_places(self) -> None:
        """Rows without a value are left out before units are bounded; ends hold what is beyond."""
        for keys in (0, 1):
            for bounding in (None, Norm(limit=2, order=1), Norm(limit=2, order=2)):
                self.check(_sums(ROWS, bounding=bounding, keys=keys, place=PLACE))

    def test_places_by_groups(self) -> None:
        """Places are groups."""
        self.check(_sums(ROWS, bounding=Groups(groups=50, rows=2), place=PLACE))

    def test_one_place(self) -> None:
        """One point, or bounds of no width."""
        for place in (replace(PLACE, points=1), replace(PLACE, high=PLACE.low)):
            self.check(_sums(ROWS, bounding=Norm(limit=2, order=1), place=place))

    def test_place_boundaries(self) -> None:
        """Whole numbers on a whole grid each have their own place; halves go up."""
        row = {"unit": 1, "key_0": "a", "key_1": 0, "value_1": 1.0}
        rows: list[Row] = [{**row, "value_0": x} for x in (0.0, 0.5, 1.0, 1.499, 119.5, 120.0)]
        place = Place(value=0, low=Fraction(0), high=Fraction(120), points=121)
        found = self.cells(_sums(place=place, keys=0), rows)
        counts = {place[0]: cells[0] // WEIGHT_STEPS for place, cells in found.items()}
        assert counts == {0: 1, 1: 3, 120: 2}

    # Distinct values.

    def test_distinct_values(self) -> None:
        """Nothing dropped: plain counts of distinct values."""
        rows = _rows()
        for keys in (0, 1, 2):
            statement = Distinct(query=_query(keys), value=1, most=1000, salt="s")
            found = self.run(statement, rows).to_pylist()
            pairs = distinct_pairs(statement, rows)
            for row in found:
                group = tuple(row[f"key_{i}"] for i in range(keys))
                assert row["cell_0"] == sum(g == group for g, _ in pairs)
            assert sum(row["cell_0"] for row in found) == len(pairs)

    def test_distinct_values_of_rows(self) -> None:
        """Every row a unit: each names one value."""
        rows = _rows()
        statement = Distinct(query=_query(1, unit_is_row=True), value=1, most=1, salt="s")
        found = self.run(statement, rows).to_pylist()
        assert sum(row["cell_0"] for row in found) == len(distinct_pairs(statement, rows))

    def test_a_unit_names_at_most_k_values(self) -> None:
        """Alone, a unit shows how many pairs it names."""
        for own in by_unit(_rows(units=6)).values():
            for most in (1, 2, 3):
                statement = Distinct(query=_query(1), value=1, most=most, salt="s")
                found = sum(row["cell_0"] for row in self.run(statement, own).to_pylist())
                assert found == min(most, len(distinct_pairs(statement, own)))

    def test_distinct_values_of_listed_groups(self) -> None:
        """Groups that are not listed use up nothing."""
        groups = (("a",), (None,))
        statement = Distinct(query=_query(1), value=1, most=1000, salt="s", groups=groups)
        found = self.run(statement, _ROWS).to_pylist()
        assert sum(r["cell_0"] for r in found) == len(distinct_pairs(statement, _ROWS))

    def test_distinct_values_of_nobody(self) -> None:
        """Rows without a unit name nothing."""
        rows = [{**row, "unit": None} for row in _rows()]
        statement = Distinct(query=_query(0), value=1, most=5, salt="s")
        assert self.run(statement, rows).to_pylist() in ([], [{"cell_0": 0}])

    # Profiles.

    def test_profiles_of_rows(self) -> None:
        """Rows and norms, also counted once."""
        edges = (Fraction(1), Fraction(5, 2), Fraction(3), Fraction(4), Fraction(10**30))
        for of in ("rows", "norm"):
            for keys in (0, 1, 2):
                for once in (False, True):
                    self.check_profile(Profile(query=_query(keys), of=of, edges=edges, once=once))

    def test_profiles_at_the_edge(self) -> None:
        """A norm of exactly an edge lies below it: 3, 4 and 5."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: Sequence[Row] = [{**row, "key_0": "a"}] * 3 + [{**row, "key_0": "b"}] * 4
        for edge in (Fraction(5), Fraction(5) - Fraction(1, 10**12)):
            self.check_profile(Profile(query=_query(1), of="norm", edges=(edge,)), rows)
        for edge in (Fraction(7), Fraction(7) - Fraction(1, 10**12)):
            self.check_profile(Profile(query=_query(1), of="rows", edges=(edge,)), rows)

    def test_profiles_of_pairs(self) -> None:
        """Distinct pairs of group and value."""
        edges = tuple(Fraction(i) for i in range(1, 9))
        for keys in (0, 1):
            self.check_profile(Profile(query=_query(keys), of="pairs", value=1, edges=edges))

    def test_profiles_of_values(self) -> None:
        """Largest and smallest values, infinities and edges that are no doubles included."""
        edges = (-Fraction(10**400), Fraction(-10), Fraction(0), Fraction(1, 3), Fraction(100))
        for of in ("largest", "smallest"):
            for value in (0, 1):
                for last in ((), (Fraction(10**400),)):
                    self.check_profile(
                        Profile(query=_query(1), of=of, value=value, edges=edges + last)
                    )

    def test_profiles_of_listed_groups(self) -> None:
        """Units without rows in the groups are left out."""
        edges = (Fraction(1), Fraction(2))
        for groups in ((("a",),), ()):
            self.check_profile(Profile(query=_query(1), of="rows", edges=edges, groups=groups))

    def test_profiles_where_rows_are_units(self) -> None:
        """Every row is a unit of size 1."""
        query = _query(1, unit_is_row=True)
        for of, value in (("rows", None), ("norm", None), ("largest", 0), ("smallest", 1)):
            edges = (Fraction(1, 2), Fraction(1))
            self.check_profile(Profile(query=query, of=of, value=value, edges=edges))  # type: ignore[arg-type]

    def test_profiles_with_many_edges(self) -> None:
        """Two hundred edges."""
        edges = tuple(Fraction(i, 7) for i in range(-100, 100))
        self.check_profile(Profile(query=_query(1), of="largest", value=0, edges=edges))
        self.check_profile(Profile(query=_query(1), of="norm", edges=edges))

    # The text.

    def test_the_text_hides_the_salt(self) -> None:
        """The salt stays secret: it would tell which groups a unit kept."""
        engine = self.make_engine({"visits": _table([])})
        statement = _sums(bounding=Groups(groups=1, rows=1), salt="xyzzy-93")
        assert "xyzzy-93" not in engine.sql(statement)
        assert engine.sql(statement) == engine.sql(replace(statement, salt="other"))
