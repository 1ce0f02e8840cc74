"""How many units are of which size."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.tables.engines import Profile
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import UNIT_RANGE, query

if TYPE_CHECKING:
    from discreet.testing.engines.oracle import Row


class Profiles(Comparison):
    """Rows, norms, pairs, largest and smallest values."""

    def test_profiles_of_rows(self) -> None:
        """Rows and norms, also counted once."""
        edges = (Fraction(1), Fraction(5, 2), Fraction(3), Fraction(4), Fraction(10**30))
        for of in ("rows", "norm"):
            for keys in (0, 1, 2):
                for once in (False, True):
                    self.check_profile(Profile(query=query(keys), of=of, edges=edges, once=once))

    def test_profiles_at_the_edge(self) -> None:
        """A norm of exactly an edge lies below it: 3, 4 and 5."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: Sequence[Row] = [{**row, "key_0": "a"}] * 3 + [{**row, "key_0": "b"}] * 4
        for edge in (Fraction(5), Fraction(5) - Fraction(1, 10**12)):
            self.check_profile(Profile(query=query(1), of="norm", edges=(edge,)), rows)
        for edge in (Fraction(7), Fraction(7) - Fraction(1, 10**12)):
            self.check_profile(Profile(query=query(1), of="rows", edges=(edge,)), rows)

    def test_profiles_of_pairs(self) -> None:
        """Distinct pairs of group and value."""
        edges = tuple(Fraction(i) for i in range(1, 9))
        for keys in (0, 1):
            self.check_profile(Profile(query=query(keys), of="pairs", value=1, edges=edges))

    def test_profiles_of_values(self) -> None:
        """Largest and smallest values, infinities and edges that are no doubles included."""
        edges = (-Fraction(10**400), Fraction(-10), Fraction(0), Fraction(1, 3), Fraction(100))
        for of in ("largest", "smallest"):
            for value in (0, 1):
                for last in ((), (Fraction(10**400),)):
                    self.check_profile(
                        Profile(query=query(1), of=of, value=value, edges=edges + last)
                    )

    def test_profiles_of_totals(self) -> None:
        """Whole sums, also where edges are met exactly."""
        edges = tuple(Fraction(i, 4) for i in range(1, 9))
        row = {"unit": 1, "key_1": 0, "value_0": 1.0}
        rows: Sequence[Row] = [{**row, "key_0": k, "value_1": 0.25} for k in "aaabbbb"]
        for order in (1, 2):
            for keys in (0, 1, 2):
                asked = Profile(
                    query=query(keys), of="total", value=1, edges=edges, bounds=UNIT_RANGE,
                    order=order,
                )  # fmt: skip
                self.check_profile(asked)
                self.check_profile(asked, rows)

    def test_profiles_of_listed_groups(self) -> None:
        """Units without rows in the groups are left out."""
        edges = (Fraction(1), Fraction(2))
        for groups in ((("a",),), ()):
            self.check_profile(Profile(query=query(1), of="rows", edges=edges, groups=groups))

    def test_profiles_where_rows_are_units(self) -> None:
        """Every row is a unit of size 1."""
        rows = query(1, unit_is_row=True)
        for of, value in (("rows", None), ("norm", None), ("largest", 0), ("smallest", 1)):
            edges = (Fraction(1, 2), Fraction(1))
            self.check_profile(Profile(query=rows, of=of, value=value, edges=edges))  # type: ignore[arg-type]

    def test_profiles_with_many_edges(self) -> None:
        """Two hundred edges."""
        edges = tuple(Fraction(i, 7) for i in range(-100, 100))
        self.check_profile(Profile(query=query(1), of="largest", value=0, edges=edges))
        self.check_profile(Profile(query=query(1), of="norm", edges=edges))
