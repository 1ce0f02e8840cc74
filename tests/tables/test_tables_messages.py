"""What goes wrong is told in the same words whatever the data, and is paid for honestly."""

import io
import logging
import math
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BudgetExceeded, DataError, DiscreetError, ParameterError, Refused
from discreet.privacy import Guarantee, Unit
from discreet.tables import protect
from discreet.tables.model.bounds import Groups, Norm

CANARIES = ("CANARY-7f3a", "987654321", "1.2345678e+77", "1987-06-05")

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(DISTINCT label) AS n FROM t",
    "SELECT label, COUNT(*) AS n FROM t GROUP BY label",
    "SELECT CAST(label AS DOUBLE) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT SUM(CLAMP(CAST(label AS BIGINT), 0, 9)) AS s FROM t",
    "SELECT SUM(CLAMP(n * n * n, 0, 9)) AS s FROM t",
    "SELECT SUM(CLAMP(x * 1e300, 0, 9)) AS s, AVG(x) AS m FROM t",
    "SELECT AVG(CLAMP(1 / n, 0, 9)) AS s FROM t",
    "SELECT AVG(CLAMP(LN(x), 0, 9)) AS s FROM t",
    "SELECT AVG(CLAMP(SQRT(x), 0, 9)) AS s FROM t",
    "SELECT AVG(CLAMP(n % 0, 0, 9)) AS s FROM t",
    "SELECT MEDIAN(x) AS q, MAX(n) AS b FROM t",
    "SELECT CAST(label AS DATE) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT date_trunc('month', day) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT COUNT(*) AS n FROM t WHERE label LIKE '%['",
    "SELECT VARIANCE(CLAMP(POW(x, 9), 0, 9)) AS v FROM t",
    "WITH each AS (SELECT person, SUM(n) AS s FROM t GROUP BY person)"
    " SELECT AVG(CLAMP(s, 0, 9)) AS m FROM each",
    # refused
    "SELECT * FROM t",
    "SELECT label FROM t",
    "SELECT COUNT(*) FROM t WHERE label = (SELECT MAX(label) FROM t)",
    "SELECT COUNT(*) FROM nowhere",
    "SELECT COUNT(nothing) FROM t",
    "SELECT FIRST(label) FROM t",
    "SELECT SUM(label) FROM t",
    "SELECT ROW_NUMBER() OVER () FROM t",
    "SELECT COUNT(*) FROM read_csv('t.csv')",
    "SELECT COUNT(*) FROM t; DROP TABLE t",
    "SELECT COUNT(*",
)


def rows(*, with_canaries):
    """Return a table, or its neighbour without the person whose values are canaries."""
    plain = [
        {"person": i, "label": "ab"[i % 2], "x": float(i), "n": i, "day": date(2025, 1, 1)}
        for i in range(1, 40)
    ]
    own = [
        {"person": 0, "label": CANARIES[0], "x": 1.2345678e77, "n": 987654321,
         "day": date(1987, 6, 5)},
        {"person": 0, "label": "", "x": math.nan, "n": 2**62, "day": None},
        {"person": 0, "label": None, "x": -math.inf, "n": -(2**63), "day": date(1, 1, 1)},
    ]  # fmt: skip
    schema = pa.schema(
        [("person", pa.int64()), ("label", pa.string()), ("x", pa.float64()), ("n", pa.int64()),
         ("day", pa.date32())]
    )  # fmt: skip
    return pa.Table.from_pylist(plain + (own if with_canaries else []), schema=schema)


def opened(folder, table, **more):
    return protect(
        table,
        name="t",
        unit="person",
        guarantee=more.pop("guarantee", Guarantee(epsilon=1000, delta=1e-3)),
        ledger=folder / "budget.db",
        **more,
    )


def heard(call):
    """Return everything that a call says: its error with all its causes, logs, warnings, output."""
    out, err, log = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s %(args)s"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    error = None
    try:
        with (
            redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(record=True) as told
        ):  # fmt: skip
            warnings.simplefilter("always")
            try:
                call()
            except DiscreetError as caught:
                error = caught
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    said = [out.getvalue(), err.getvalue(), log.getvalue(), *(str(w.message) for w in told)]
    return error, chain(error), "\n".join(said)


def chain(error):
    """Return the words of an error, its notes, and those of whatever it came from."""
    found = []
    while error is not None:
        found.append(f"{type(error).__name__}: {error} {error.args!r}")
        found += [f"  {key}={value!r}" for key, value in sorted(vars(error).items())]
        found += getattr(error, "__notes__", [])
        error = error.__cause__ or error.__context__
    return "\n".join(found)


@pytest.fixture
def pair(tmp_path_factory):
    # New for each question: a released count may say that people are too few for the next one.
    folders = [tmp_path_factory.mktemp(name) for name in ("with", "without")]
    tables = (rows(with_canaries=True), rows(with_canaries=False))
    both = [opened(f, t) for f, t in zip(folders, tables, strict=True)]
    yield both
    for one in both:
        one.close()


@pytest.mark.lengthy
@pytest.mark.parametrize("question", QUESTIONS)
def test_neighbours_get_the_same_words(question, pair):
    """Whether something fails, and in which words, does not depend on who is in the table."""
    quotes = [heard(lambda one=one: one.quote(question, epsilon=1))[1] for one in pair]
    assert quotes[0] == quotes[1]
    first, second = (
        heard(lambda one=one: one.sql(question, epsilon=1, delta=1e-6)) for one in pair
    )
    assert first[1] == second[1]
    for said in (*first[1:], *second[1:]):
        assert not any(canary in said for canary in CANARIES)


@pytest.mark.lengthy
def test_tracebacks_show_no_values(pair):
    for question in QUESTIONS:
        try:
            pair[0].sql(question, epsilon=1, delta=1e-6)
        except DiscreetError as error:
            shown = "".join(traceback.format_exception(error))
            assert not any(canary in shown for canary in CANARIES)


@pytest.mark.lengthy
@pytest.mark.parametrize("question", QUESTIONS)
def test_columns_with_nothing_usable_answer_like_any_other(question, tmp_path, pair):
    """A column of NULLs, or an empty table, is answered with noise, not with an error."""
    empty = rows(with_canaries=True).slice(0, 0)
    with opened(tmp_path, empty) as nobody:
        first = heard(lambda: nobody.sql(question, epsilon=1, delta=1e-6))
        second = heard(lambda: pair[1].sql(question, epsilon=1, delta=1e-6))
        assert first[1] == second[1]


# What fails, and what it costs


class Broken:
    """An engine that fails in the middle, in words that quote a value."""

    def __init__(self, inner, error):
        self.inner, self.error, self.calls = inner, error, 0

    def sql(self, statement, /):
        return self.inner.sql(statement)

    def close(self):
        self.inner.close()

    def holding(self):
        return self.inner.holding()

    def aggregate(self, statement, /):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.inner.aggregate(statement)


@pytest.fixture
def fresh(tmp_path):
    guarantee = Guarantee(epsilon=3, delta=1e-6)
    with opened(tmp_path, rows(with_canaries=True), guarantee=guarantee, rows=1) as one:
        yield one


def kinds(protected):
    return [entry["kind"] for entry in protected.account.history()]


def test_a_crash_after_the_charge_keeps_the_charge_and_says_so(fresh):
    real = fresh._opened.connection
    fresh._opened = fresh._opened._replace(
        connection=Broken(real, DataError("the engine could not carry out the statement."))
    )
    error, words, _ = heard(lambda: fresh.sql(QUESTIONS[0], epsilon=1))
    assert isinstance(error, DataError)
    assert fresh.account.used == pytest.approx(1 / 3, rel=1e-6)
    assert kinds(fresh) == ["account", "charge"], "charged, and nothing was released"
    assert "charge stands" in words, "whoever paid must be told"
    fresh._opened = fresh._opened._replace(connection=real)
    assert fresh.sql(QUESTIONS[0], epsilon=1) is not None
    fresh.account.ledger.verify()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), MemoryError(), SystemExit(1)])
def test_an_interrupt_leaves_the_ledger_right(fresh, interrupt):
    real = fresh._opened.connection
    fresh._opened = fresh._opened._replace(connection=Broken(real, interrupt))
    with pytest.raises(type(interrupt)):
        fresh.sql(QUESTIONS[0], epsilon=1)
    assert kinds(fresh) == ["account", "charge"]
    fresh.account.ledger.verify()
    fresh._opened = fresh._opened._replace(connection=real)
    answer = fresh.sql(QUESTIONS[0], epsilon=1)
    assert not answer.is_recalled
    assert kinds(fresh) == ["account", "charge", "charge", "release"]
    assert fresh.account.used == pytest.approx(2 / 3, rel=1e-6)
    fresh.account.ledger.verify()


def test_a_refused_question_charges_nothing(fresh):
    engine = Broken(fresh._opened.connection, None)
    fresh._opened = fresh._opened._replace(connection=engine)
    for question in QUESTIONS[17:]:
        with pytest.raises(Refused) as caught:
            fresh.sql(question, epsilon=1)
        assert "Nothing was spent" in str(caught.value)
    assert (fresh.account.used, engine.calls, kinds(fresh)) == (0, 0, ["account"])


@pytest.mark.lengthy
def test_a_budget_that_is_too_small_touches_no_data(fresh):
    engine = Broken(fresh._opened.connection, None)
    fresh._opened = fresh._opened._replace(connection=engine)
    with pytest.raises(BudgetExceeded) as caught:
        fresh.sql(QUESTIONS[0], epsilon=3.5)
    assert "Nothing was spent" in str(caught.value)
    with pytest.raises(BudgetExceeded):
        fresh.plan([QUESTIONS[0], "SELECT MAX(CLAMP(n, 0, 9)) AS q FROM t"], epsilon=4).release()
    with pytest.raises(BudgetExceeded):
        fresh.watch([QUESTIONS[0]], threshold=3, epsilon=4)
    assert (fresh.account.used, engine.calls, kinds(fresh)) == (0, 0, ["account"])


def test_a_quote_touches_no_data(fresh):
    engine = Broken(fresh._opened.connection, None)
    fresh._opened = fresh._opened._replace(connection=engine)
    for question in QUESTIONS[:17]:
        fresh.quote(question, epsilon=1)
    assert (fresh.account.used, engine.calls, kinds(fresh)) == (0, 0, ["account"])


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": 1, "delta": 2},
        {"epsilon": 1, "share": "5%"},
        {},
        {"share": "0%"},
        {"within": "5%"},
        {"epsilon": 1, "confidence": 1},
        {"epsilon": 1, "bounding": 5},
        {"epsilon": 1, "delta": 0, "bounding": Norm(limit=2, order=2)},
    ],
    ids=str,
)
def test_impossible_terms_are_refused_before_anything_is_charged(fresh, terms):
    engine = Broken(fresh._opened.connection, None)
    fresh._opened = fresh._opened._replace(connection=engine)
    for ask in (fresh.quote, fresh.sql):
        with pytest.raises(ParameterError):
            ask(QUESTIONS[0], **terms)
    assert (fresh.account.used, engine.calls, kinds(fresh)) == (0, 0, ["account"])


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("question", "rows_limit", "terms"),
    [
        (QUESTIONS[0], 1, {"bounding": Norm(limit=1e-8, order=1)}),
        (QUESTIONS[0], 1, {"bounding": Norm(limit=1e-8, order=2)}),
        (QUESTIONS[1], 10**7, {}),
        ("SELECT MEDIAN(CLAMP(x, 0, 9)) AS q FROM t", 10**9, {}),
        (QUESTIONS[2], 1, {"bounding": Groups(groups=10**9, rows=1)}),
    ],
    ids=["tiny norm", "tiny L2 norm", "many values", "many rows in a median", "many groups"],
)
def test_limits_beyond_reason_are_carried_out_or_refused_for_free(
    question, rows_limit, terms, tmp_path
):
    """Whatever is charged is answered: no limit may turn out to be impossible afterwards."""
    with opened(tmp_path, rows(with_canaries=True), rows=rows_limit) as one:
        try:
            one.sql(question, epsilon=1, delta=1e-6, **terms)
        except DiscreetError:
            assert one.account.used == 0
        else:
            assert one.account.used > 0


@pytest.mark.lengthy
def test_records_with_secret_keys_are_answered(tmp_path):
    with protect(
        rows(with_canaries=True),
        name="t",
        unit=Unit.record(),
        guarantee=Guarantee(epsilon=30, delta=1e-3),
        ledger=tmp_path / "budget.db",
    ) as one:
        for shown in ("COUNT(*) AS n", "AVG(CLAMP(x, 0, 9)) AS m", "MEDIAN(CLAMP(x, 0, 9)) AS q"):
            one.sql(f"SELECT label, {shown} FROM t GROUP BY label", epsilon=1, delta=1e-6)
        one.sql("SELECT DISTINCT label FROM t", epsilon=1, delta=1e-6)


def test_groups_bounding_without_delta_is_possible(fresh):
    terms = {"epsilon": 1, "delta": 0, "bounding": Groups(groups=1, rows=1)}
    assert fresh.sql(QUESTIONS[0], **terms).value is not None


def test_secret_keys_without_delta_are_refused_for_free(fresh):
    for ask in (fresh.quote, fresh.sql):
        with pytest.raises(ParameterError, match="Nothing was spent"):
            ask(QUESTIONS[2], epsilon=1, delta=0)
    assert fresh.account.used == 0


def test_periods_that_were_not_named_are_refused(tmp_path):
    unit = Unit.column("person").per("month", time="day")
    with protect(
        rows(with_canaries=True),
        name="t",
        unit=unit,
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        ledger=tmp_path / "budget.db",
        rows=1,
    ) as one:
        with pytest.raises(DiscreetError):
            one.sql(QUESTIONS[0], epsilon=1)
        one.sql(QUESTIONS[0], epsilon=1, periods="2025-01")
        one.sql(QUESTIONS[0], epsilon=1, periods="2025-02")
        # A month has a budget of its own, so the second month took nothing from the first.
        assert one.account.used == pytest.approx(1 / 3, rel=1e-6)


# Data that changes


def written(path, table):
    pq.write_table(table, path)
    return str(path)


@pytest.mark.lengthy
def test_appended_rows_are_a_new_version_of_the_same_account(tmp_path):
    path = tmp_path / "t.parquet"
    table = rows(with_canaries=False)
    with opened(tmp_path, written(path, table), rows=1) as one:
        first = one.sql(QUESTIONS[0], epsilon=5)
        used, versions = one.account.used, one.account.sources()
        assert not one.refresh()
        again = one.sql(QUESTIONS[0], epsilon=5)
        assert again.is_recalled, "the same question of the same data is free"
        assert again.value == first.value
        assert one.account.used == used
        more = table.append_column("new", pa.array([1.0] * len(table)))
        grown = pa.concat_tables(
            [more, more.set_column(0, "person", pa.array(range(100, 139), type=pa.int64()))]
        )
        written(path, grown)
        assert one.refresh()
        assert one.account.sources() != versions
        assert one.account.used == used, "a new version costs nothing"
        answer = one.sql(QUESTIONS[0], epsilon=5)
        assert not answer.is_recalled
        assert abs(answer.value - 78) < 12
        assert one.account.used > used
        one.sql("SELECT SUM(CLAMP(new, 0, 1)) AS s FROM t", epsilon=1)
        one.account.ledger.verify()


def test_erased_people_are_gone_from_the_next_answer(tmp_path):
    path = tmp_path / "t.parquet"
    table = rows(with_canaries=False)
    with opened(tmp_path, written(path, table), rows=1) as one:
        one.sql(QUESTIONS[0], epsilon=5)
        used = one.account.used
        written(path, table.slice(0, 4))
        answer = one.sql(QUESTIONS[0], epsilon=5)
        assert abs(answer.value - 4) < 12
        assert one.account.used > used, "erasing gives no budget back"


def test_a_vanished_column_is_named_and_nothing_is_charged(tmp_path):
    path = tmp_path / "t.parquet"
    table = rows(with_canaries=True)
    with opened(tmp_path, written(path, table), rows=1) as one:
        written(path, table.drop_columns(["x"]))
        error, words, said = heard(lambda: one.sql(QUESTIONS[0], epsilon=1))
        assert isinstance(error, DataError)
        assert "'x'" in str(error)
        assert not any(canary in words + said for canary in CANARIES)
        assert one.account.used == 0
        written(path, table)
        assert one.sql(QUESTIONS[0], epsilon=1).value is not None


def test_a_changed_type_is_named_and_nothing_is_charged(tmp_path):
    path = tmp_path / "t.parquet"
    table = rows(with_canaries=True)
    with opened(tmp_path, written(path, table), rows=1) as one:
        place = table.column_names.index("n")
        changed = table.set_column(place, "n", table["n"].cast(pa.string()))
        written(path, changed)
        error, words, said = heard(lambda: one.sql(QUESTIONS[0], epsilon=1))
        assert isinstance(error, DataError)
        assert "'n'" in str(error)
        assert not any(canary in words + said for canary in CANARIES)
        assert one.account.used == 0


def test_a_file_that_is_gone_charges_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    with opened(tmp_path, written(path, rows(with_canaries=True)), rows=1) as one:
        path.unlink()
        error, words, said = heard(lambda: one.sql(QUESTIONS[0], epsilon=1))
        assert error is not None
        assert not any(canary in words + said for canary in CANARIES)
        assert one.account.used == 0


@pytest.mark.lengthy
def test_a_broken_file_tells_nothing_of_its_data(tmp_path):
    path = tmp_path / "t.parquet"
    with opened(tmp_path, written(path, rows(with_canaries=True)), rows=1) as one:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] + b"CANARY-7f3a" + whole[len(whole) // 2 + 11 :])
        error, words, said = heard(lambda: one.sql(QUESTIONS[2], epsilon=1, delta=1e-7))
        assert error is None or isinstance(error, DataError)
        assert not any(canary in words + said for canary in CANARIES)


@pytest.mark.lengthy
def test_csv_fields_that_do_not_fit_are_null_and_not_told(tmp_path):
    lines = ["person,x", *(f"{i},{i}.5" for i in range(30))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    with opened(tmp_path, str(path), rows=1) as one:
        question = "SELECT COUNT(x) AS k, SUM(CLAMP(x, 0, 9)) AS s FROM t"
        before = heard(lambda: one.sql(question, epsilon=1))
        path.write_text("\n".join([*lines, "99,CANARY-7f3a"]) + "\n")
        after = heard(lambda: one.sql(question, epsilon=1))
        assert before[1] == after[1] == ""
        assert "CANARY-7f3a" not in after[2]
