"""Cells of values: sums, moments, and values that are absent."""

from fractions import Fraction

from discreet.tables.engines import WEIGHT_STEPS, Cells, Groups, Norm
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import FAMILIES, made_rows, sums


class CellsOfValues(Comparison):
    """Every family of cells, and bounds of every size."""

    def test_cells_of_rows(self) -> None:
        """All families where every row is a unit."""
        for family in FAMILIES:
            self.check(sums(family))

    def test_cells_of_rows_without_keys(self) -> None:
        """All families, one group."""
        for family in FAMILIES:
            self.check(sums(family, keys=0))

    def test_cells_by_first_norm(self) -> None:
        """All families, sums bounded."""
        for family in FAMILIES:
            self.check(sums(family, bounding=Norm(limit=Fraction(5, 2), order=1)))

    def test_cells_by_second_norm(self) -> None:
        """All families, roots of sums of squares bounded."""
        for family in FAMILIES:
            self.check(sums(family, bounding=Norm(limit=Fraction(5, 2), order=2)))

    def test_cells_by_norm_without_keys(self) -> None:
        """All families, one group."""
        for family in FAMILIES:
            self.check(sums(family, bounding=Norm(limit=3, order=2), keys=0))

    def test_cells_by_groups(self) -> None:
        """All families, rows weighed in each group."""
        for family in FAMILIES:
            self.check(sums(family, bounding=Groups(groups=50, rows=2)))

    def test_families_together(self) -> None:
        """Several families in one statement keep their order."""
        self.check(sums(*FAMILIES, bounding=Norm(limit=2, order=2)))
        self.check(sums(*reversed(FAMILIES), bounding=Norm(limit=2, order=1)))
        self.check(sums(*FAMILIES))

    def test_one_bound_for_all_values(self) -> None:
        """Bounds of no width: t is 0."""
        for kind in ("sum", "linear", "quadratic"):
            for bound in (Fraction(0), Fraction(7)):
                family = Cells(kind=kind, values=(0,), bounds=((bound, bound),))
                self.check(sums(family, bounding=Norm(limit=2, order=2)))

    def test_negative_bounds(self) -> None:
        """Both bounds below zero: the largest size is that of the lower one."""
        for kind in ("sum", "linear", "quadratic"):
            family = Cells(kind=kind, values=(0,), bounds=((Fraction(-8), Fraction(-2)),))
            self.check(sums(family, bounding=Norm(limit=2, order=2)))

    def test_tiny_and_huge_bounds(self) -> None:
        """Bounds up to the last double, and beyond it."""
        for low, high in ((-(10**307), 10**307), (-(10**308), 10**308), (0, Fraction(1, 10**300))):
            pair = (Fraction(low), Fraction(high))
            for kind in ("sum", "linear", "quadratic"):
                family = Cells(kind=kind, values=(0,), bounds=(pair,))
                self.check(sums(family, bounding=Norm(limit=3, order=1)))

    def test_row_cells_add_up_to_one_row(self) -> None:
        """Families with an absent cell share out each row completely, or nearly so."""
        for family in FAMILIES:
            if family.kind in ("rows", "sum") or not family.with_absent:
                continue
            rows = made_rows()
            (cells,) = self.cells(sums(family, keys=0), rows).values()
            assert all(cell >= 0 for cell in cells)
            assert len(rows) * (WEIGHT_STEPS - 9) <= sum(cells) <= len(rows) * WEIGHT_STEPS
