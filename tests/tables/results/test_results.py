"""Results: what goes in comes out, in every form, and nothing in them can hurt a reader."""

import copy
import io
import json
import math
import pickle
import subprocess
import sys
from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from discreet._words import percent
from discreet.accounting import PureLoss
from discreet.errors import DataError, DiscreetError, MissingExtra, ParameterError
from discreet.ledger import Receipt
from discreet.tables.results.example import region_counts
from discreet.tables.results.format import cell, number
from discreet.tables.results.result import Result

RECEIPT = Receipt(bodies=('{"account":"people","index":7}',))
EVIL = [
    "<script>alert(1)</script>",
    "\x1b[31mred\x07",
    "a\nb\r\tc",
    "[bold]x[/bold]",
    "\u202eabc",
    "",
]


def scalar(value=42.0, error=3.0, **changes):
    facts = {"columns": ("n",), "keys": (), "values": {"n": [value]}, "errors": {"n": [error]}}
    bars = {"lows": {"n": [value - 2 * error]}, "highs": {"n": [value + 2 * error]}}
    return region_counts(**{**facts, **bars, "reliable": {}, "facts": {}, **changes})


def keyed(keys, values=None, **changes):
    values = list(range(len(keys))) if values is None else values
    usual = {"columns": ("k", "n"), "keys": ("k",), "values": {"k": keys, "n": values}, "facts": {}}
    return region_counts(
        **{**usual, "errors": {}, "lows": {}, "highs": {}, "reliable": {}, **changes}
    )


def shown_by_rich(result, width=200):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(result)
    return console.file.getvalue()


class TestForms:
    def test_all_forms_tell_the_same(self):
        result = region_counts()
        names = ["region"] + [f"{m}{s}" for m in ("n", "pay") for s in
                              ("", "_error", "_low", "_high", "_reliable")]  # fmt: skip
        dicts = result.to_dicts()
        assert list(dicts[0]) == names
        assert result.to_arrow().to_pylist() == dicts
        assert result.to_polars().to_dicts() == dicts
        assert result.to_pandas().to_dict("records") == dicts
        assert list(result) == dicts
        assert dicts[1] == {
            "region": "south", "n": -17.9, "n_error": 29.1, "n_low": -74.9, "n_high": 39.1,
            "n_reliable": False, "pay": 3021.0, "pay_error": 90112.0, "pay_low": 0.0,
            "pay_high": 179637.0, "pay_reliable": False,
        }  # fmt: skip

    def test_without_errors_only_values_are_left(self):
        result = region_counts()
        for names in (result.to_arrow(errors=False).column_names,
                      result.to_pandas(errors=False).columns.tolist(),
                      result.to_polars(errors=False).columns,
                      list(result.to_dicts(errors=False)[0])):  # fmt: skip
            assert names == ["region", "n", "pay"]

    def test_a_column_of_the_question_keeps_its_name(self):
        result = scalar(columns=("n", "n_error"), values={"n": [1.0], "n_error": [2.0]})
        row = result.to_dicts()[0]
        assert (row["n"], row["n_error"]) == (1.0, 2.0)
        assert len(row) == 10

    @pytest.mark.parametrize(
        ("keys", "type_"),
        [
            (["a", None], pa.string()),
            ([1, 2], pa.int64()),
            ([1.5, 2.5], pa.float64()),
            ([True, False], pa.bool_()),
            ([True, None], pa.bool_()),
            ([date(2026, 1, 1), None], pa.date32()),
            ([datetime.fromisoformat("2026-01-01T12:00"), None], pa.timestamp("us")),
        ],
    )
    def test_keys_keep_their_types_on_the_way_to_arrow_and_json(self, keys, type_):
        result = keyed(keys)
        assert result.to_arrow()["k"].type == type_
        assert result.to_arrow()["k"].to_pylist() == keys
        again = Result.from_json(result.to_json(), receipt=RECEIPT, left=0.5)
        assert again["k"].tolist() == keys
        assert again["k"].dtype == result["k"].dtype

    def test_columns_come_from_arrow_numpy_and_pandas(self):
        import pandas as pd

        days = [datetime.fromisoformat(day) for day in ("2026-01-01", "2026-01-02")]
        for column in (pa.array(days), np.array(days, dtype="datetime64[ns]"), pd.Series(days)):
            assert keyed(column)["k"].tolist() == days
        assert keyed(pa.array(["a", None]))["k"].tolist() == ["a", None]

    def test_a_missing_value_is_none_in_rows_and_nan_in_columns(self):
        result = keyed(["a", "b"], [1.5, None])
        assert result.to_dicts()[1]["n"] is None
        assert math.isnan(result["n"][1])
        assert result.to_arrow()["n"].null_count == 1

    @pytest.mark.lengthy
    def test_an_empty_result_works_everywhere(self):
        result = keyed([], np.array([]))
        assert len(result) == 0
        assert result.to_dicts() == []
        assert result.to_arrow().num_rows == 0
        assert "(no rows)" in str(result)
        assert "<table>" in result._repr_html_()
        assert shown_by_rich(result)
        assert not result.plot().patches
        assert (
            Result.from_json(result.to_json(), receipt=RECEIPT, left=1).to_json()
            == result.to_json()
        )

    def test_columns_cannot_be_written_to(self):
        result = region_counts()
        for array in (result["n"], result.errors["n"], result.lows["n"], result.reliable["n"]):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_copies_and_pickles_are_the_same(self):
        result = region_counts()
        for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
            assert again.to_json() == result.to_json()


class TestValue:
    def test_one_number_has_a_value(self):
        assert scalar(42.5).value == 42.5
        assert type(scalar(42.5).value) is float

    @pytest.mark.parametrize("result", [region_counts(), keyed(["a", "b"]), keyed([], [])])
    def test_more_or_less_than_one_number_has_none(self, result):
        with pytest.raises(ParameterError, match="single number"):
            _ = result.value

    def test_an_unknown_column_is_refused_with_those_there_are(self):
        with pytest.raises(ParameterError, match="region, n, pay"):
            region_counts()["income"]


class TestRefusals:
    @pytest.mark.parametrize(
        "changes",
        [
            {"columns": ()},
            {"columns": ("n", "n")},
            {"keys": ("nowhere",)},
            {"values": {"region": ["a"]}},
            {"values": {"region": ["a"], "n": [1, 2], "pay": [1, 2]}},
            {"errors": {"region": [1, 2]}},
            {"errors": {"n": [1]}},
            {"reliable": {"n": [True]}},
            {"values": {"region": [b"a", b"b"], "n": [1, 2], "pay": [1, 2]}},
        ],
    )
    def test_what_does_not_fit_together_is_refused(self, changes):
        with pytest.raises(DataError):
            region_counts(**changes)

    @pytest.mark.parametrize(
        "changes", [{"confidence": 1.5}, {"epsilon": -1}, {"delta": 2}, {"epsilon": math.nan}]
    )
    def test_bad_parameters_are_refused(self, changes):
        with pytest.raises(ParameterError):
            region_counts(**changes)

    @pytest.mark.lengthy
    @pytest.mark.parametrize("package", ["pandas", "polars"])
    def test_a_missing_library_is_named_with_the_command_that_installs_it(self, package):
        code = (
            f"import sys; sys.modules[{package!r}] = None\n"
            "from discreet.tables.results.example import region_counts\n"
            "from discreet.errors import MissingExtra\n"
            f"try:\n    region_counts().to_{package}()\n"
            f"except MissingExtra as e:\n    assert str(e).endswith('pip install {package}'), e\n"
            "else:\n    raise AssertionError"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_matplotlib_is_an_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
        with pytest.raises(MissingExtra, match=r"discreet\[plot\]"):
            region_counts().plot()


class TestJson:
    def test_a_result_comes_back_exactly(self):
        result = region_counts(notes=("one", "two"))
        again = Result.from_json(result.to_json(), receipt=RECEIPT, left=0.25)
        assert again.to_json() == result.to_json()
        assert again.is_recalled
        assert (again.left, again.receipt, again.loss) == (0.25, RECEIPT, result.loss)
        assert str(again).replace("Answered before, at no new cost. ", "").replace(
            "25%", "83%"
        ) == str(result)

    keys = st.one_of(
        st.lists(st.one_of(st.none(), st.text()), max_size=4),
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
        st.lists(st.one_of(st.none(), st.dates()), max_size=4),
        st.lists(st.one_of(st.none(), st.datetimes()), max_size=4),
        st.lists(st.one_of(st.none(), st.times()), max_size=4),
        st.lists(st.one_of(st.none(), st.booleans()), max_size=4),
    )

    @pytest.mark.lengthy
    @given(keys=keys, data=st.data())
    def test_anything_comes_back_exactly(self, keys, data):
        numbers = st.lists(st.floats(), min_size=len(keys), max_size=len(keys))
        result = keyed(keys, data.draw(numbers), errors={"n": data.draw(numbers)},
                       lows={"n": data.draw(numbers)}, highs={"n": data.draw(numbers)})  # fmt: skip
        written = result.to_json()
        json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        again = Result.from_json(written, receipt=RECEIPT, left=1)
        assert again.to_json() == written
        for name in ("k", "n"):
            assert again[name].dtype == result[name].dtype
            assert again.to_dicts() == result.to_dicts()

    @pytest.mark.parametrize(
        "data", [b"", b"[]", b"null", b"{}", b'{"format":2}', b"\xff", b'{"format":1,"columns":[]}']
    )
    def test_other_bytes_are_refused(self, data):
        with pytest.raises(DataError, match="no result"):
            Result.from_json(data, receipt=RECEIPT, left=1)

    def test_two_equal_answers_have_different_digests(self):
        one, other = (scalar(nonce="a" * 32), scalar(nonce="b" * 32))
        assert one.to_json() != other.to_json()
        plain = {"columns": ("n",), "keys": (), "values": {"n": [1]}, "confidence": 0.9,
                 "question": "?", "epsilon": 1, "delta": 0, "loss": PureLoss(epsilon=1),
                 "receipt": RECEIPT, "left": 1}  # fmt: skip
        assert Result(**plain).nonce != Result(**plain).nonce

    def test_facts_that_json_cannot_hold_are_refused(self):
        with pytest.raises(DataError, match="facts"):
            region_counts(facts={"unit": object()}).to_json()
        with pytest.raises(DataError, match="facts"):
            region_counts(facts={"limit": math.nan}).to_json()


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "half", "told"),
        [
            (12340.2, 57, "12,340 ± 57"),
            (0.43119, 0.0021, "0.4312 ± 0.0021"),
            (123456.7, 5432, "123,500 ± 5,400"),
            (5, 0.5, "5.00 ± 0.50"),
            (44, 4, "44 ± 4"),  # whole numbers have no tenths
            (-0.001, 5.6, "0.0 ± 5.6"),
            (1.0, 9.96, "1 ± 10"),
            (7, 99.9, "10 ± 100"),
            (0.0, 1e-12, "0e+00 ± 1.0e-12"),
            (1e20, 1e15, "1.000000e+20 ± 1.0e+15"),
        ],
    )
    def test_a_value_has_the_digits_its_error_leaves(self, value, half, told):
        value = float(value)
        assert cell(value, value - half, value + half, math.nan) == told

    def test_a_rounded_count_keeps_its_sign_of_an_even_interval(self):
        assert cell(3048.0, 3041.0, 3054.0, math.nan) == "3,048 ± 7"
        assert cell(45.0, 41.0, 52.0, math.nan) == "45 (41 to 52)"

    @given(bars=st.tuples(*[st.floats()] * 4))
    def test_any_cell_can_be_written(self, bars):
        told = cell(*bars)
        assert 0 < len(told) < 120
        assert (told == "-") == math.isnan(bars[0])

    @given(value=st.floats(-1e305, 1e305), half=st.floats(1e-300, 1e300))
    def test_the_number_shown_is_as_close_as_the_error_asks(self, value, half):
        told = float(number(value, half).replace(",", ""))
        # To the second digit of the error: half a unit of it is at most a twentieth of the error.
        assert abs(told - value) <= 0.0501 * half + 1e-15 * abs(value)

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (1234567, "1,234,567"),
            (0.125, "0.125"),
            (math.nan, "-"),
            (math.inf, "∞"),
            (1e300, "1e+300"),
        ],
    )
    def test_without_an_error_a_number_is_plain(self, value, told):
        assert number(value) == told

    @given(part=st.floats(0, 1))
    def test_what_is_left_is_never_overstated_and_used_and_left_make_100(self, part):
        left = Fraction(percent(part, up=False).rstrip("%"))
        assert left / 100 <= part + 1e-11
        assert Fraction(percent(1 - part, up=True).rstrip("%")) + left <= 100 + Fraction(1, 500)


class TestShown:
    def test_lines_are_aligned_also_for_wide_letters(self):
        lines = str(keyed(["a", "日本", "e\u0301"], [1.0, 10.0, 100.0])).splitlines()
        assert lines[1] == "----  ---"
        assert lines[3] == "日本   10"  # two letters of double width
        assert lines[4] == "e\u0301     100"

    def test_long_results_show_both_ends_and_how_many_there_are(self):
        result = keyed(list(range(1000)), [float(i) for i in range(1000)])
        for text in (str(result), result._repr_html_(), shown_by_rich(result)):
            assert "984 more of 1,000 rows" in text
            assert "999" in text
            assert "500" not in text
        assert len(str(result).splitlines()) < 25

    def test_unreliable_values_are_marked_and_the_mark_is_explained(self):
        assert "~-18 ± 57" in str(region_counts())
        assert "~ marks" in str(region_counts())
        assert "~" not in str(region_counts(reliable={}))

    def test_the_footer_tells_price_rest_and_entry(self):
        footer = str(region_counts(share=0.04, more=20)).splitlines()[-3:]
        assert footer == [
            "Price: epsilon=0.5, delta=1e-08, 4% of the budget.",
            "Left of the budget: 83%; about 20 more like it fit.",
            "Entry 7 of account 'people'.",
        ]
        assert "Answered before" in str(region_counts(is_recalled=True))

    @pytest.mark.parametrize("evil", EVIL)
    def test_no_key_can_do_harm(self, evil):
        result = keyed([evil, "b"], notes=(evil,), columns=("k", "n"))
        text, page = str(result), result._repr_html_()
        assert "<script>" not in page
        for written in (text, page, shown_by_rich(result), result.explain(), repr(result)):
            assert not set(written) & set("\x1b\x07\r\t\u202e")
        assert len(text.splitlines()) == len(str(keyed(["a", "b"], notes=("x",))).splitlines())

    def test_markup_in_a_key_is_shown_as_it_is(self):
        assert "[bold]x[/bold]" in shown_by_rich(keyed(["[bold]x[/bold]", "b"]))

    @pytest.mark.parametrize("evil", EVIL[:-1])
    def test_no_name_of_a_column_can_do_harm(self, evil):
        result = region_counts(columns=(evil,), keys=(), values={evil: [1.0]}, facts={}, errors={},
                               lows={}, highs={}, reliable={})  # fmt: skip
        assert "<script>" not in result._repr_html_()
        for written in (str(result), shown_by_rich(result), result._repr_html_()):
            assert not set(written) & set("\x1b\x07\r\t\u202e")

    def test_a_long_key_is_cut(self):
        assert max(map(len, str(keyed(["x" * 5000, "b"])).splitlines())) < 120

    @pytest.mark.lengthy
    @given(keys=st.lists(st.text(), min_size=1, max_size=3))
    def test_any_keys_can_be_shown(self, keys):
        result = keyed(keys)
        lines = str(result).splitlines()
        assert lines[2 + len(keys)] == ""  # one line for each, then the footer
        assert shown_by_rich(result)
        assert result._repr_html_().count("<tr>") == 1 + len(keys)


class TestAdjustments:
    def test_negative_counts_become_zero_where_they_must_be_at_least_zero(self):
        result = region_counts()
        raised = result.nonnegative()
        assert raised["n"].tolist() == [12340.2, 0.0]
        assert raised.lows["n"].tolist() == [12283.2, 0.0]
        assert raised.highs["n"].tolist() == result.highs["n"].tolist()
        assert "zero" in raised.notes[0]
        assert result["n"][1] == -17.9
        assert (raised.receipt, raised.loss, raised.epsilon) == (result.receipt, result.loss, 0.5)

    def test_an_interval_below_zero_ends_at_zero(self):
        raised = scalar(-10.0, 2.0).nonnegative("n")
        assert (raised.lows["n"][0], raised.value, raised.highs["n"][0]) == (0, 0, 0)

    def test_a_mean_that_may_be_negative_is_left_alone_unless_asked(self):
        facts = {"aggregates": [{"kind": "mean", "column": "pay", "bounds": [-5, 5]},
                                {"kind": "count", "column": "n"}]}  # fmt: skip
        values = {"region": ["a", "b"], "n": [-1.0, 1.0], "pay": [-3.0, 3.0]}
        result = region_counts(facts=facts, values=values)
        assert result.nonnegative()["pay"].tolist() == [-3.0, 3.0]
        assert result.nonnegative("pay")["pay"].tolist() == [0.0, 3.0]

    @given(values=st.lists(st.floats(-1e6, 1e6), min_size=1), truth=st.floats(0, 1e6))
    def test_zero_is_never_further_from_a_true_value(self, values, truth):
        raised = keyed(values, values).nonnegative("n")
        assert (np.abs(raised["n"] - truth) <= np.abs(np.array(values) - truth)).all()

    def test_counts_become_whole_and_intervals_wider(self):
        whole = region_counts().rounded()
        assert whole["n"].dtype == np.int64
        assert whole["n"].tolist() == [12340, -18]
        assert (whole.lows["n"].tolist(), whole.highs["n"].tolist()) == ([12283, -75], [12398, 40])
        assert whole.errors["n"][0] > 29.1
        assert whole["pay"].tolist() == region_counts()["pay"].tolist()
        assert whole.to_arrow()["n"].type == pa.int64()

    def test_numbers_beyond_whole_ones_stay_floats(self):
        assert scalar(1e300).rounded("n").value == 1e300
        assert math.isnan(keyed(["a", "b"], [1.4, None]).rounded("n")["n"][1])

    def test_columns_that_are_no_numbers_are_refused(self):
        with pytest.raises(ParameterError, match="'region'"):
            region_counts().rounded("region")
        with pytest.raises(ParameterError, match="can be used on: n"):
            keyed(["a", "b"]).nonnegative()


class TestExplain:
    def test_it_answers_what_a_reader_asks(self):
        told = " ".join(region_counts().explain().split())
        for words in (
            "all records of one user_id",
            "62.2 times of 100",
            "exceeded 5 (chosen privately",
            "clamped to [0, 200,000] (declared by the custodian)",
            "61.5 rows or more",
            "COUNT(*): Gaussian noise of standard deviation 29.1. ",
            "AVG(income): Gaussian noise of standard deviation 158.2 to 90,112, depending on the",
            "wider by what inferred bounds and limits are estimated to have moved",
            "epsilon=0.5, delta=1e-08",
            "83% of the budget is left",
            "entry 7",
            "from a secure source",
        ):
            assert words in told

    def test_it_works_without_any_facts(self):
        assert "one unit" in scalar(facts={}).explain()

    def test_other_ways_are_told_too(self):
        median = {"kind": "quantile", "text": "MEDIAN(x)", "noise": "exponential"}
        facts = {
            "bounding": {"kind": "groups", "groups": 3, "rows": 2, "origin": "declared"},
            "keys": {"kind": "public"},
            "neighbours": "replace_one",
            "aggregates": [median],
        }
        told = " ".join(region_counts(facts=facts).explain().split())
        assert "at most 3 groups, chosen at random, with a weight of at most 2 rows" in told
        assert "groups are public" in told
        assert "exponential mechanism" in told
        assert "may lie anywhere between the bounds" in told
        rows = scalar(facts={"bounding": {"kind": "none"}}).explain()
        assert "Each row is a unit of its own" in " ".join(rows.split())

    def test_both_bounds_of_a_correlation_are_told(self):
        both = {"kind": "correlation", "text": "CORR(x, y)", "noise": "gaussian",
                "bounds": [0, 1], "second_bounds": [-5, 5], "origin": "inferred"}  # fmt: skip
        told = " ".join(region_counts(facts={"aggregates": [both]}).explain().split())
        assert "CORR(x, y) were clamped to [0, 1] and to [-5, 5] (chosen privately" in told

    def test_seeded_noise_is_not_called_secure(self):
        seeded = Receipt(bodies=('{"account":"people","index":7,"noise":"seeded"}',))
        told = region_counts(receipt=seeded).explain()
        assert "SEEDED" in told
        assert "secure" not in told


class TestPlots:
    @pytest.mark.lengthy
    def test_groups_are_bars_with_their_intervals(self):
        axes, pay = region_counts().plot()
        assert pay.get_ylabel() == "pay"  # all aggregates are drawn, each in its panel
        assert [axes.get_title(loc="left"), pay.get_title(loc="left")] == [
            "n by region",
            "pay by region",
        ]
        assert [bar.get_height() for bar in axes.patches] == [12340.2, -17.9]
        arms = axes.collections[0].get_segments()
        assert arms[0][:, 1].tolist() == pytest.approx([12283.2, 12397.2])
        assert axes.get_ylabel() == "n"

    def test_numbers_and_dates_are_a_line_with_a_band_in_order(self):
        days = [date(2026, 1, 1) + timedelta(days=i) for i in (2, 0, 1)]
        for keys in ([3, 1, 2], days):
            axes = keyed(
                keys, [30.0, 10.0, 20.0], lows={"n": [29, 9, 19]}, highs={"n": [31, 11, 21]}
            ).plot()
            assert axes.lines[0].get_ydata().tolist() == [10.0, 20.0, 30.0]
            assert len(axes.collections) == 1

    def test_a_single_number_is_a_point(self):
        axes = scalar(42.0).plot()
        assert axes.lines[0].get_ydata().tolist() == [42.0]

    def test_many_groups_are_cut_and_it_says_so(self):
        axes = keyed([f"k{i}" for i in range(100)], [1.0] * 100).plot()
        assert len(axes.patches) == 40
        assert "the first 40 of 100 groups" in [text.get_text() for text in axes.texts]

    def test_given_axes_are_used_and_dollars_are_no_formula(self, tmp_path):
        from matplotlib.figure import Figure

        axes = Figure().add_subplot()
        result = keyed(["$x", "\\frac{$"], columns=("k", "n"))
        assert result.plot("n", axes=axes) is axes
        axes.figure.savefig(tmp_path / "plot.png")

    def test_columns_without_numbers_are_refused(self):
        with pytest.raises(ParameterError, match="columns of numbers: n, pay"):
            region_counts().plot("region")


def test_every_refusal_is_ours():
    assert issubclass(MissingExtra, DiscreetError)
    assert issubclass(DataError, DiscreetError)


@pytest.mark.lengthy
def test_importing_results_loads_nothing_heavy():
    code = (
        "import sys, discreet.tables.results.result, discreet.tables.results.card, "
        "discreet.tables.declarations.declaration, discreet.tables.results.consistent\n"
        "heavy = set('pyarrow pandas polars rich matplotlib duckdb sqlglot scipy'.split())\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class TestKeysAndValuesLeftOut:
    def test_a_key_that_another_one_determines_stands_before_it(self):
        result = keyed(["a", "b"], [3.0, 4.0])
        made = result.with_key("half", of="k", mapping={"a": "x", "b": "y", "c": "x"})
        assert (made.columns, made.keys) == (("half", "k", "n"), ("half", "k"))
        assert made["half"].tolist() == ["x", "y"]
        assert made["n"].tolist() == [3.0, 4.0]
        assert made.notes[-1] == "half: added as what k determines (free post-processing)."
        assert result.notes == ()

    @pytest.mark.parametrize(
        ("name", "of", "mapping", "words"),
        [("half", "n", {}, "of must be one of the keys"), ("n", "k", {}, "none of the columns"),
         ("half", "k", {"a": "x"}, "1 rows have one that it lacks")],
    )  # fmt: skip
    def test_a_key_that_is_not_determined_is_refused(self, name, of, mapping, words):
        with pytest.raises(ParameterError, match=words):
            keyed(["a", "b"]).with_key(name, of=of, mapping=mapping)

    def test_values_with_wide_intervals_are_left_out(self):
        values = [10.0, 100.0, -100.0, 0.0]
        bars = {"lows": {"n": [v - 20 for v in values]}, "highs": {"n": [v + 30 for v in values]}}
        result = keyed(list("abcd"), values, **bars, errors={"n": [9.0] * 4}, reliable={})
        kept = result.withheld("n", beyond=0.3)
        assert np.isnan(kept["n"]).tolist() == [True, False, False, True]
        assert np.isnan(kept.errors["n"]).tolist() == [True, False, False, True]
        assert "farther than 30% of them were left out (free" in kept.notes[-1]
        assert kept.to_csv(errors=False).splitlines()[1] == "a,"
        assert np.isnan(result.withheld(beyond=0.29)["n"]).all()

    @pytest.mark.parametrize("beyond", [0, -1, math.nan])
    def test_an_odd_share_is_refused(self, beyond):
        with pytest.raises(ParameterError, match="beyond"):
            keyed(["a"], [1.0]).withheld("n", beyond=beyond)
