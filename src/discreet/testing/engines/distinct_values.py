"""Distinct values, of which a unit names only so many."""

from discreet.tables.engines import Distinct
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import SAMPLE, made_rows, query
from discreet.testing.engines.oracle import by_unit, distinct_pairs


class DistinctValues(Comparison):
    """Plain counts of pairs of group and value."""

    def test_distinct_values(self) -> None:
        """Nothing dropped: plain counts of distinct values."""
        rows = made_rows()
        for keys in (0, 1, 2):
            statement = Distinct(query=query(keys), value=1, most=1000, salt="s")
            found = self.run(statement, rows).to_pylist()
            pairs = distinct_pairs(statement, rows)
            for row in found:
                group = tuple(row[f"key_{i}"] for i in range(keys))
                assert row["cell_0"] == sum(g == group for g, _ in pairs)
            assert sum(row["cell_0"] for row in found) == len(pairs)

    def test_distinct_values_of_rows(self) -> None:
        """Every row a unit: each names one value."""
        rows = made_rows()
        statement = Distinct(query=query(1, unit_is_row=True), value=1, most=1, salt="s")
        found = self.run(statement, rows).to_pylist()
        assert sum(row["cell_0"] for row in found) == len(distinct_pairs(statement, rows))

    def test_a_unit_names_at_most_k_values(self) -> None:
        """Alone, a unit shows how many pairs it names."""
        for own in by_unit(made_rows(units=6)).values():
            for most in (1, 2, 3):
                statement = Distinct(query=query(1), value=1, most=most, salt="s")
                found = sum(row["cell_0"] for row in self.run(statement, own).to_pylist())
                assert found == min(most, len(distinct_pairs(statement, own)))

    def test_distinct_values_of_listed_groups(self) -> None:
        """Groups that are not listed use up nothing."""
        groups = (("a",), (None,))
        statement = Distinct(query=query(1), value=1, most=1000, salt="s", groups=groups)
        found = self.run(statement, SAMPLE).to_pylist()
        assert sum(r["cell_0"] for r in found) == len(distinct_pairs(statement, SAMPLE))

    def test_distinct_values_of_nobody(self) -> None:
        """Rows without a unit name nothing."""
        rows = [{**row, "unit": None} for row in made_rows()]
        statement = Distinct(query=query(0), value=1, most=5, salt="s")
        assert self.run(statement, rows).to_pylist() in ([], [{"cell_0": 0}])
