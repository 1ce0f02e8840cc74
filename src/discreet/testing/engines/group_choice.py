"""Which groups of a unit count, where it has too many."""

from dataclasses import replace

from discreet.tables.engines import WEIGHT_STEPS, Distinct, Groups
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import (
    FAMILIES,
    LINEAR,
    ROWS,
    arrow_table,
    made_rows,
    query,
    sums,
)
from discreet.testing.engines.oracle import Row, by_unit, expected_sums


class GroupChoice(Comparison):
    """Salted ranks: few enough, fair, and repeatable."""

    def test_a_unit_has_at_most_k_groups(self) -> None:
        """Alone, a unit shows its kept groups: as many as allowed, each with the right cells."""
        for own in by_unit(made_rows(units=6)).values():
            for most in (1, 2, 3):
                statement = sums(ROWS, LINEAR, bounding=Groups(groups=most, rows=2), keys=2)
                found, wanted = self.cells(statement, own), expected_sums(statement, own)
                assert len(found) == min(most, len(wanted))
                for group, cells in found.items():
                    for cell, (low, high) in zip(cells, wanted[group], strict=True):
                        assert low <= cell <= high

    def test_ranks_depend_on_the_salt(self) -> None:
        """With 60 salts each of two groups is chosen at some time, but for 1 in 2**58 runs."""
        row = {"unit": 1, "key_1": 0, "value_0": 1.0, "value_1": 1.0}
        rows: list[Row] = [{**row, "key_0": key} for key in ("a", "b")]
        engine = self.connect({"visits": arrow_table(rows)})
        chosen = set()
        for salt in range(60):
            statement = sums(bounding=Groups(groups=1, rows=1), salt=f"salt {salt}")
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
        engine = self.connect({"visits": pa.table(columns)})
        for salt in ("one", "two"):
            for statement in (
                sums(bounding=Groups(groups=1, rows=1), salt=salt),
                sums(bounding=Groups(groups=1, rows=1), keys=2, salt=salt),
                Distinct(query=query(1), value=0, most=1, salt=salt),
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
        found = self.cells(sums(bounding=Groups(groups=1, rows=1)), rows)
        assert sum(cells[0] for cells in found.values()) == 60 * WEIGHT_STEPS
        assert set(found) == {("a",), ("b",)}

    def test_the_same_salt_chooses_the_same(self) -> None:
        """An answer can be computed again."""
        statement = sums(*FAMILIES, bounding=Groups(groups=2, rows=2), keys=2)
        assert self.cells(statement, made_rows()) == self.cells(statement, made_rows())

    def test_the_text_hides_the_salt(self) -> None:
        """The salt stays secret: it would tell which groups a unit kept."""
        engine = self.connect({"visits": arrow_table([])})
        statement = sums(bounding=Groups(groups=1, rows=1), salt="xyzzy-93")
        assert "xyzzy-93" not in engine.sql(statement)
        assert engine.sql(statement) == engine.sql(replace(statement, salt="other"))
