"""Results in parts, of engines that hand them over so."""

from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.tables.engines import Distinct, Norm, Profile, Statement, StreamingConnection
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.made_up import GRID, LINEAR, ROWS, made_rows, query, sums

if TYPE_CHECKING:
    import pyarrow as pa

_MANY = made_rows(units=40)
_BOUNDING = Norm(limit=2, order=2)


class Batches(Comparison):
    """Parts make up the whole. An engine that gives none passes."""

    def test_parts_make_up_the_whole(self) -> None:
        """Whatever is asked, in parts of two rows or in one."""
        statements: list[Statement] = [
            sums(ROWS, LINEAR, keys=keys, grid=grid, bounding=_BOUNDING)
            for keys in (0, 1, 2)
            for grid in (None, GRID)
        ]
        statements.append(Distinct(query=query(2), value=1, most=1000, salt="s"))
        statements.append(Profile(query=query(1), of="rows", edges=(Fraction(1), Fraction(4))))
        for statement in statements:
            whole = self.run(statement, _MANY)
            for rows in (2, 10**6):
                parts = self._parts(statement, rows)
                assert all(part.schema == whole.schema for part in parts)
                found = [row for part in parts for row in part.to_pylist()]
                assert sorted(map(repr, found)) == sorted(map(repr, whole.to_pylist()))

    def test_of_nobody_there_is_an_empty_part(self) -> None:
        """It says at least which columns there are."""
        rows = [{**row, "unit": None} for row in made_rows()]
        statement = sums(keys=1, bounding=_BOUNDING)
        whole, parts = self.run(statement, rows), self._parts(statement, 2)
        assert parts
        assert all(part.num_rows == 0 and part.schema == whole.schema for part in parts)

    def test_parts_that_nobody_takes_do_no_harm(self) -> None:
        """The next question is answered, whether the block before was left or failed."""
        statement = sums(keys=2, bounding=_BOUNDING)
        whole = self.run(statement, _MANY)
        if isinstance(self._connection, StreamingConnection):
            with self._connection.batches(statement, rows=2):
                pass
            with (
                suppress(KeyError),
                self._connection.batches(statement, rows=2) as parts,
            ):
                next(parts)
                raise KeyError
        assert self.run(statement, _MANY).num_rows == whole.num_rows

    def _parts(self, statement: Statement, rows: int) -> "list[pa.Table]":
        """Return the parts of an answer over the rows that were run on last."""
        if not isinstance(self._connection, StreamingConnection):
            return [self._connection.aggregate(statement).reveal_without_noise()]
        with self._connection.batches(statement, rows=rows) as parts:
            return [part.reveal_without_noise() for part in parts]
