"""Counts of rows and units, however they are bounded."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.tables.engines import WEIGHT_STEPS, Groups, Norm
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import (
    LINEAR,
    NORMS,
    PRESENT,
    ROWS,
    TOTAL,
    UNIT_RANGE,
    UNITS,
    sums,
)

if TYPE_CHECKING:
    from discreet.testing.engines.oracle import Row


class Counts(Comparison):
    """Every limit, order and number of keys."""

    def test_counts_of_one_group(self) -> None:
        """Small units count in full, large ones up to the limit less a hair."""
        row = {"key_0": "a", "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "unit": unit} for unit in (1, 2, 2, 2)]
        found = self.cells(sums(bounding=Norm(limit=2, order=1), keys=0), rows)
        assert found == {(): [3 * WEIGHT_STEPS - 1]}

    def test_counts_by_norm(self) -> None:
        """All limits and orders."""
        for bounding in NORMS:
            self.check(sums(bounding=bounding))

    def test_counts_by_norm_without_keys(self) -> None:
        """One group: the norm is the count."""
        for bounding in NORMS:
            self.check(sums(bounding=bounding, keys=0))

    def test_counts_by_norm_with_two_keys(self) -> None:
        """Two keys, NULLs among both."""
        for bounding in NORMS:
            self.check(sums(bounding=bounding, keys=2))

    def test_counts_of_rows(self) -> None:
        """Every row a unit of its own."""
        for keys in (0, 1, 2):
            self.check(sums(keys=keys))

    def test_counts_of_many_groups_kept(self) -> None:
        """More groups allowed than there are: nothing is dropped, rows are weighed."""
        for rows in (1, 2, 1000):
            self.check(sums(bounding=Groups(groups=50, rows=rows), keys=2))

    def test_counts_of_groups_without_keys(self) -> None:
        """One group: nothing to choose."""
        for rows in (1, 3):
            self.check(sums(bounding=Groups(groups=1, rows=rows), keys=0))

    def test_once(self) -> None:
        """A unit counts once in each group, by itself and beside its rows."""
        for own in NORMS:
            for keys in (0, 1):
                self.check(sums(replace(UNITS, own=own), keys=keys))
                self.check(sums(replace(UNITS, own=own), ROWS, PRESENT, bounding=own, keys=keys))

    def test_totals(self) -> None:
        """Whole sums of a unit, by themselves, of two values, and beside its rows."""
        for own in NORMS:
            for keys in (0, 1, 2):
                total = replace(TOTAL, own=own)
                self.check(sums(total, keys=keys))
                other = replace(total, values=(1,), bounds=(UNIT_RANGE,), own=NORMS[0])
                self.check(sums(UNITS, total, LINEAR, other, bounding=NORMS[-3], keys=keys))

    def test_totals_of_both_signs(self) -> None:
        """What cancels within a group is no matter, and what a unit has in two groups is."""
        row = {"unit": 1, "key_1": 0, "value_1": 1.0}
        each: list[Row] = [
            {**row, "key_0": key, "value_0": value}
            for key, value in (("a", 100.0), ("a", -10.0), ("a", -10.0), ("b", -8.0), ("b", None))
        ]
        self.check(sums(TOTAL), each * 10)
        self.check(sums(replace(TOTAL, own=Norm(limit=9, order=2))), each * 10)

    def test_an_exact_limit_is_no_clipping(self) -> None:
        """A norm of exactly the limit keeps the full weight: 3, 4 and 5."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: Sequence[Row] = [{**row, "key_0": "a"}] * 3 + [{**row, "key_0": "b"}] * 4
        found = self.cells(sums(bounding=Norm(limit=5, order=2)), rows)
        assert found == {("a",): [3 * WEIGHT_STEPS], ("b",): [4 * WEIGHT_STEPS]}

    def test_a_unit_of_many_rows(self) -> None:
        """1e5 rows of one unit, next to a unit of one row."""
        row = {"key_0": "a", "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: Sequence[Row] = [{**row, "unit": 1}] * 100_000 + [{**row, "unit": 2}]
        for bounding in (Norm(limit=3, order=1), Norm(limit=3, order=2), Groups(groups=2, rows=3)):
            self.check(sums(ROWS, LINEAR, bounding=bounding), rows)
        # 2048 rows have too many steps for 32 bits.
        for most in (2047, 2048, 50_000):
            for bounding in (Norm(limit=most, order=2), Groups(groups=2, rows=most)):
                self.check(sums(ROWS, LINEAR, bounding=bounding), rows)

    def test_rows_without_a_value_take_nothing_off_the_others(self) -> None:
        """Rows that can add nothing are left out before units are bounded, unless others can."""
        row = {"unit": 1, "key_0": "a", "key_1": 0, "value_1": None}
        rows: list[Row] = [{**row, "value_0": value} for value in (1.0, 1.0, None, None, None)]
        bounding, present = Norm(limit=2, order=1), replace(PRESENT, with_absent=False)
        assert self.cells(sums(present, bounding=bounding), rows) == {("a",): [2 * WEIGHT_STEPS]}
        for beside in (ROWS, PRESENT, replace(present, values=(1,))):
            self.check(sums(present, beside, bounding=bounding), rows)
            found = self.cells(sums(present, beside, bounding=bounding), rows)
            assert found["a",][0] < WEIGHT_STEPS
