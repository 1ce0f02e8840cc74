"""Units add up: their integers depend on nothing but their own rows."""

from dataclasses import replace
from fractions import Fraction

from discreet.tables.engines import Groups, Norm
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import FAMILIES, GRID, ROWS, TOTAL, UNITS, sums


class Additivity(Comparison):
    """The heart of every sensitivity."""

    def test_units_add_up_by_norm(self) -> None:
        """Both norms."""
        for bounding in (Norm(limit=2, order=1), Norm(limit=2, order=2)):
            self.check_units_add_up(sums(*FAMILIES, bounding=bounding))

    def test_units_add_up_by_groups(self) -> None:
        """Ranks of one unit do not depend on other units."""
        self.check_units_add_up(sums(*FAMILIES, bounding=Groups(groups=2, rows=2), keys=2))

    def test_units_add_up_once(self) -> None:
        """Units counted once."""
        self.check_units_add_up(sums(UNITS, keys=2))
        self.check_units_add_up(sums(UNITS, *FAMILIES, bounding=Norm(limit=2, order=1)))

    def test_units_add_up_in_total(self) -> None:
        """Whole sums, whose norms are wide numbers."""
        for order in (1, 2):
            total = replace(TOTAL, own=Norm(limit=Fraction(1, 3), order=order))
            self.check_units_add_up(sums(total, keys=2))
            self.check_units_add_up(sums(UNITS, total, ROWS, bounding=Norm(limit=2, order=1)))

    def test_units_add_up_at_places(self) -> None:
        """Units at places."""
        for bounding in (Norm(limit=2, order=1), Groups(groups=2, rows=1)):
            self.check_units_add_up(sums(ROWS, bounding=bounding, grid=GRID))

    def test_units_add_up_with_least(self) -> None:
        """Units whose small contributions are left out."""
        self.check_units_add_up(sums(bounding=Norm(limit=2, order=1), least=Fraction(2, 7)))
