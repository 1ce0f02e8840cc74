"""Which rows count: listed groups, rows of nobody, small contributions, places."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.tables.engines import WEIGHT_STEPS, Bounding, Groups, Norm, ValueGrid
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import (
    FAMILIES,
    GRID,
    LINEAR,
    NORMS,
    ROWS,
    UNITS,
    made_rows,
    sums,
)

if TYPE_CHECKING:
    from discreet.testing.engines.oracle import Row


class WhichRows(Comparison):
    """What is left out is left out before units are bounded."""

    def test_listed_groups(self) -> None:
        """Other rows are left out before units are bounded; NULL is a key like others."""
        for groups in ((("a",), (None,)), ((None,),), (("a",), ("nobody",)), (("",),), ()):
            for bounding in (None, Norm(limit=2, order=2), Groups(groups=9, rows=2)):
                self.check(sums(bounding=bounding, groups=groups))

    def test_listed_groups_of_two_keys(self) -> None:
        """All combinations, and a list that is no product."""
        crossed = tuple((a, b) for a in ("a", None) for b in (0, 2**62, None))
        ragged = (("a", 0), (None, -1), ("b", None), (None, None), ("c", 2**62))
        for groups in (crossed, ragged):
            for bounding in (None, Norm(limit=1, order=1), Groups(groups=9, rows=1)):
                self.check(sums(bounding=bounding, groups=groups, keys=2))

    def test_listed_groups_in_quotes(self) -> None:
        """Keys that look like SQL are just keys."""
        rows = [{**row, "key_0": "a' OR '1'='1"} for row in made_rows()]
        for key in ("a' OR '1'='1", "a", "%"):
            self.check(sums(bounding=Norm(limit=2, order=2), groups=((key,),)), rows)

    def test_many_listed_groups(self) -> None:
        """A thousand keys."""
        groups = (*((f"key {i}",) for i in range(1000)), ("a",), ("b",))
        self.check(sums(bounding=Norm(limit=2, order=2), groups=groups))

    def test_rows_of_nobody(self) -> None:
        """Rows without a unit never count, however they are bounded."""
        rows = made_rows() + [{**row, "unit": None} for row in made_rows(seed=2)]
        boundings: tuple[Bounding, ...] = (*NORMS, Groups(groups=50, rows=2))
        for bounding in (*boundings, Groups(groups=1, rows=1)):
            for keys in (0, 1):
                if bounding != Groups(groups=1, rows=1) or keys == 0:
                    self.check(sums(LINEAR, bounding=bounding, keys=keys), rows)
        assert self.cells(sums(bounding=Groups(groups=1, rows=1)), rows[-5:]) == {}

    def test_no_rows(self) -> None:
        """An empty table has no groups, and zeros where there are no keys."""
        rows: list[Row] = []
        for bounding in (None, Norm(limit=1, order=1), Norm(limit=1, order=2)):
            for family in FAMILIES:
                self.check(sums(family, bounding=bounding), rows)
                self.check(sums(family, bounding=bounding, keys=0), rows)
        self.check(sums(bounding=Groups(groups=1, rows=1)), rows)
        self.check(sums(bounding=Norm(limit=1, order=1), least=Fraction(1, 2)), rows)

    def test_order_of_rows(self) -> None:
        """Rows in another order, and other units' rows, change nothing."""
        rows = made_rows(units=30)
        shuffled = list(rows)
        random.Random(3).shuffle(shuffled)  # noqa: S311 - makes up data, no noise
        for bounding in (None, Norm(limit=2, order=2), Groups(groups=2, rows=2)):
            statement = sums(*FAMILIES, bounding=bounding)
            assert self.cells(statement, rows) == self.cells(statement, shuffled)

    def test_least(self) -> None:
        """Contributions below it are left out, and so are groups that nobody is left in."""
        for bounding in (Norm(limit=2, order=1), Norm(limit=2, order=2)):
            for least in (Fraction(1, 3), Fraction(3, 5), Fraction(1, 1000)):
                self.check(sums(ROWS, LINEAR, bounding=bounding, keys=2, least=least))
                self.check(sums(ROWS, bounding=bounding, keys=0, least=least))
                units = replace(UNITS, own=bounding)
                self.check(sums(units, least=least))
                self.check(sums(units, ROWS, LINEAR, bounding=bounding, keys=2, least=least))

    def test_least_that_is_just_reached(self) -> None:
        """A full row reaches 1, and a clipped one does not."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "key_0": "a"}, {**row, "key_0": "b"}]
        full = sums(bounding=Norm(limit=2, order=1), least=Fraction(1))
        assert len(self.cells(full, rows)) == 2
        clipped = replace(full, bounding=Norm(limit=Fraction(199, 100), order=1))
        assert self.cells(clipped, rows) == {}

    def test_places(self) -> None:
        """Rows without a value are left out before units are bounded; ends hold what is beyond."""
        for keys in (0, 1):
            for bounding in (None, Norm(limit=2, order=1), Norm(limit=2, order=2)):
                self.check(sums(ROWS, bounding=bounding, keys=keys, grid=GRID))

    def test_places_by_groups(self) -> None:
        """Places are groups."""
        self.check(sums(ROWS, bounding=Groups(groups=50, rows=2), grid=GRID))

    def test_one_place(self) -> None:
        """One point, or bounds of no width."""
        for grid in (replace(GRID, points=1), replace(GRID, high=GRID.low)):
            self.check(sums(ROWS, bounding=Norm(limit=2, order=1), grid=grid))

    def test_place_boundaries(self) -> None:
        """Whole numbers on a whole grid each have their own place; halves go up."""
        row = {"unit": 1, "key_0": "a", "key_1": 0, "value_1": 1.0}
        rows: list[Row] = [{**row, "value_0": x} for x in (0.0, 0.5, 1.0, 1.499, 119.5, 120.0)]
        grid = ValueGrid(value=0, low=Fraction(0), high=Fraction(120), points=121)
        found = self.cells(sums(grid=grid, keys=0), rows)
        counts = {place[0]: cells[0] // WEIGHT_STEPS for place, cells in found.items()}
        assert counts == {0: 1, 1: 3, 120: 2}
