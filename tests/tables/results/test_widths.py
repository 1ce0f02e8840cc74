"""What is printed about answers fits a terminal of 80 columns, whatever users called things."""

import numpy as np
import pytest
from rich.console import Console

from discreet import Guarantee, datasets
from discreet.accounting import PureLoss
from discreet.ledger import AccountQuote, BudgetQuote, Receipt
from discreet.tables import Result, protect
from discreet.tables.model.quotes import Expected, Quote

LONG = "a_name_that_somebody_thought_would_explain_itself_in_full_without_any_documentation"
WORDS = "Somebody wrote a story where one word would have been quite enough, or even two. " * 3


def wide(text):
    return [line for line in text.splitlines() if len(line) > 80 and len(line.split()) > 1]


def result(measures=12, keys=2, rows=30):
    names = tuple(f"{LONG}_{i}" for i in range(keys + measures))
    values = {name: [f"{WORDS}{i}" for i in range(rows)] for name in names[:keys]}
    numbers = {name: np.arange(rows) * 12345.678 for name in names[keys:]}
    return Result(
        columns=names, keys=names[:keys], values=values | numbers,
        errors={name: np.full(rows, 29.0) for name in numbers},
        lows={name: column - 57 for name, column in numbers.items()},
        highs={name: column + 57 for name, column in numbers.items()},
        confidence=0.95, question=WORDS, epsilon=0.123456789, delta=1.23456e-9, left=0.5,
        loss=PureLoss(epsilon=1), receipt=Receipt(bodies=('{"account":"people","index":7}',)),
        notes=(WORDS,),
        facts={"unit": WORDS, "aggregates": [{"kind": "sum", "text": f"SUM({LONG})",
               "noise": "laplace", "deviations": [1.0, 2.0], "bounds": [0, 1]}]},
    )  # fmt: skip


@pytest.mark.parametrize(("measures", "keys"), [(1, 0), (1, 1), (3, 1), (12, 2), (0, 5), (40, 0)])
def test_tables_fit(measures, keys):
    text = str(result(measures, keys))
    assert wide(text) == []
    assert "…" in text  # what is cut is cut visibly


def test_columns_that_do_not_fit_side_by_side_are_all_there():
    shown = result(measures=12, keys=1, rows=2)
    text = str(shown)
    assert text.count("0 ± 57") == 12
    assert text.count("12,346 ± 57") == 12


def test_explanations_fit():
    assert wide(result().explain()) == []


def test_rich_tables_fit():
    console = Console(width=80)
    with console.capture() as got:
        console.print(result())
        console.print(result(measures=2, keys=1))
    assert [line for line in got.get().splitlines() if len(line) > 80] == []


def test_quotes_fit():
    room = AccountQuote(account=LONG, budgets=(BudgetQuote(name="total", fits=True, used=0.1,
                        used_after=0.15, more=17, epsilon_share=0.05),))  # fmt: skip
    quote = Quote(
        question=f"SELECT {', '.join(f'COUNT({LONG}_{i})' for i in range(9))} FROM people",
        epsilon=0.5, delta=1e-9, loss=PureLoss(epsilon=0.5), budgets=room, confidence=0.95,
        noise="laplace", notes=(WORDS,),
        expected=(Expected(text=f"COUNT({LONG})", half_width=6.0, words=WORDS),),
    )  # fmt: skip
    assert wide(str(quote)) == []
    assert "…" in str(quote)


def test_plans_fit(tmp_path):
    with protect(
        datasets.census(500, seed=1),
        name="people",
        unit="person_id",
        rows=1,
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        ledger=tmp_path / "budget.db",
        columns={"income": {"bounds": (0, 200_000)}},
    ) as tables:
        sum_of = "SUM(income + income + income + income + income)"
        asked = f"SELECT COUNT(*) AS {LONG}, {sum_of} AS s FROM people"
        plan = tables.plan([asked, "SELECT AVG(income) FROM people"], epsilon=1)
        assert wide(str(plan)) == []
