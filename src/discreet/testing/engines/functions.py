"""Every function, case and cast, evaluated over a small table."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from discreet.tables.engines import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Function,
    Literal,
    Scalar,
    Scan,
    Select,
)
from discreet.testing.engines.comparison import Comparison
from discreet.testing.engines.vocabulary import (
    DAY,
    NUMBERS,
    TEXTS,
    TIMES,
    TRUTHS,
    Cases,
    fixed,
    type_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.engines import Type


class Functions(Comparison):
    """What questions are made of: total, and the same on every engine but for a last bit."""

    def test_every_function_has_cases(self) -> None:
        """The vocabulary is closed."""
        tried = {function for function, _, _ in (*NUMBERS, *TRUTHS, *TEXTS, *TIMES)}
        assert tried == set(get_args(Function))

    def test_functions_of_numbers(self) -> None:
        """Infinities, NaN, zeros of both signs, roots of negative numbers."""
        self.check_functions(NUMBERS)

    def test_functions_that_are_true_or_false(self) -> None:
        """Three truth values; texts by their bytes."""
        self.check_functions(TRUTHS)

    def test_functions_of_texts(self) -> None:
        """Characters, not bytes; texts that become too long are NULL."""
        self.check_functions(TEXTS, of="text")

    def test_functions_of_dates(self) -> None:
        """Leap days, the last day, weeks of another year."""
        self.check_functions(TIMES, of="date")

    def test_case(self) -> None:
        """The first condition that is true counts; NULL is not true."""
        x = ColumnRef("x")
        is_large = Call("greater", (x, fixed(1.0)))
        steps = Case(((is_large, fixed("large")), (Call("is_null", (x,)), fixed("none"))))
        assert self.evaluate([steps], {"x": [2.0, 0.5, None]}) == [["large", None, "none"]]

    def test_casts(self) -> None:
        """What does not fit is NULL, and raises nothing."""
        x, t = ColumnRef("x"), ColumnRef("t")
        casts = [
            Cast(x, "int64"), Cast(x, "int8"), Cast(x, "text"), Cast(t, "double"), Cast(t, "date"),
            Cast(t, "boolean"),
        ]  # fmt: skip
        found = self.evaluate(casts, {"x": [300.0, 1e300, None], "t": ["2024-02-29", "1.5", "x"]})
        assert found[:2] == [[300, None, None], [None, None, None]]
        assert found[2][2] is None
        assert found[3:5] == [[None, 1.5, None], [DAY, None, None]]
        assert found[5][2] is None

    def check_functions(self, cases: Cases, *, of: "Type" = "double") -> None:
        """Compare all of them in one statement; NULLs alone are ``of`` this type."""
        nodes: list[Scalar] = []
        columns: dict[str, Any] = {}
        for function, given, _ in cases:
            columns_first = sorted(given, key=lambda one: isinstance(one, Literal))
            known = next((type_of(one) for one in columns_first if one is not None), of)
            arguments: list[Scalar] = []
            for one in given:
                if not isinstance(one, Literal):
                    columns[f"a{len(columns)}"] = _array(one, known)
                arguments.append(one if isinstance(one, Literal) else ColumnRef([*columns][-1]))
            nodes.append(Call(function, tuple(arguments)))
        found = self.evaluate(nodes, columns)
        wrong = [
            f"{function}{given} is {value!r}, not {wanted!r}"
            for (function, given, wanted), (value,) in zip(cases, found, strict=True)
            if not _is_same(value, wanted)
        ]
        assert wrong == []

    def evaluate(self, nodes: Sequence[Scalar], columns: dict[str, Any]) -> list[list[Any]]:
        """Return the values of expressions over a small table, each in the table's order."""
        import pyarrow as pa

        size = len(next(iter(columns.values())))
        table = pa.table({**columns, "place": pa.array(range(size))})
        named = tuple((f"c{i}", node) for i, node in enumerate(nodes))
        rows = Select(Scan("visits"), (*named, ("place", ColumnRef("place"))))
        found = self.read(rows, {"visits": table}).sort_by("place")
        return [column.to_pylist() for column in found.columns[:-1]]


def _array(value: Any, type_: "Type") -> "pa.Array":
    import pyarrow as pa

    if isinstance(value, datetime) and value.tzinfo is not None:
        return pa.array([value], pa.timestamp("us", tz="UTC"))
    kinds = {
        "boolean": pa.bool_(), "int64": pa.int64(), "double": pa.float64(), "text": pa.string(),
        "timestamp": pa.timestamp("us"), "date": pa.date32(),
    }  # fmt: skip
    return pa.array([value], kinds[type_])


def _is_same(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(value, float):
        signs = math.copysign(1, value) == math.copysign(1, wanted)
        close = math.isclose(value, wanted, rel_tol=1e-15)
        return (math.isnan(wanted) and math.isnan(value)) or (close and signs)
    return type(value) is type(wanted) and bool(value == wanted)
