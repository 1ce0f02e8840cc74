"""Outputs are evaluated over released values, whatever names a question gives to its columns."""

from contextlib import closing

import pyarrow as pa
import pytest

from discreet.tables.engines.post_processing import PostProcessor
from discreet.tables.model.output import Order, Output
from discreet.tables.model.query import Key
from discreet.tables.model.scalar import Call, Literal, ReleasedAggregate, ReleasedKey

RELEASED = pa.table({"key_0": ["a", "b", "c"], "aggregate_0": [3.0, 1.0, 2.0]})
KEYS = (Key(name="k", type="text", values=None),)


def evaluated(output, **more):
    with closing(PostProcessor(output, KEYS)) as evaluate:
        table, rows = evaluate(RELEASED, **more)
    return table.to_pydict(), rows.tolist()


@pytest.mark.parametrize("name", ["n", "released_row", "key_0", "aggregate_0", "released", 'a "b"'])
def test_names_do_not_mislead(name):
    doubled = Call("negate", (ReleasedAggregate(0),))
    output = Output(columns=((name, doubled),), order=(Order(ReleasedAggregate(0)),))
    assert evaluated(output) == ({name: [-1.0, -2.0, -3.0]}, [1, 2, 0])
    assert evaluated(output, is_shown=False) == ({name: [-3.0, -1.0, -2.0]}, [0, 1, 2])


def test_rows_are_selected_sorted_and_cut():
    large = Call("greater", (ReleasedAggregate(0), Literal(1.5, "double")))
    order = (Order(ReleasedAggregate(0), is_descending=True), Order(ReleasedKey(0)))
    output = Output(columns=(("k", ReleasedKey(0)),), where=large, order=order, limit=1, offset=1)
    assert evaluated(output) == ({"k": ["c"]}, [2])
    assert evaluated(output, is_shown=False)[1] == [0, 1, 2]
