"""The price of a question: whatever is asked, all parts together cost at most that."""

from fractions import Fraction

import pyarrow as pa
import pytest
import tables_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import GaussianLoss, LaplaceLoss, compose
from discreet.accounting import delta as certified_delta
from discreet.accounting import epsilon as certified_epsilon
from discreet.privacy import Guarantee
from discreet.tables import protect
from discreet.tables.model.bounds import Groups, Norm
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.price import price
from discreet.tables.sql.parse import parse

CASES = list(oracle.cases())
TYPES = oracle.all_types()
EASY = [case for case in CASES if case.asked is None]
epsilons = st.floats(1e-3, 20).map(Fraction)
deltas = st.floats(-12, -2).map(lambda power: Fraction(10**power))
boundings = st.sampled_from(
    [None, Norm(limit=3, order=1), Norm(limit=3, order=2), Groups(groups=2, rows=2)]
)


def priced(case, *, epsilon, delta, bounding=None):
    catalog = oracle.catalog_of(case, TYPES)
    query = parse(case.sql, catalog, periods=case.periods)
    return price(query, lay_out(query), catalog, epsilon=epsilon, delta=delta, bounding=bounding)


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(case=st.sampled_from(EASY), epsilon=epsilons, delta=deltas, bounding=boundings)
def test_all_parts_together_cost_at_most_what_was_asked(case, epsilon, delta, bounding):
    if case.unit["kind"] == "record":
        bounding = None
    found = priced(case, epsilon=epsilon, delta=delta, bounding=bounding)
    assert found.epsilon == epsilon
    assert found.delta <= delta
    assert certified_epsilon(found.loss, delta=found.delta) <= float(epsilon) * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(case=st.sampled_from([c for c in EASY if c.key_kind != "private"]), epsilon=epsilons)
def test_without_delta_everything_is_pure(case, epsilon):
    found = priced(case, epsilon=epsilon, delta=Fraction(0))
    assert found.noise.kind == "laplace"
    assert found.key_delta == 0
    assert certified_epsilon(found.loss, delta=0) <= float(epsilon) * (1 + 1e-9)


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(case=st.sampled_from(EASY), epsilon=epsilons, delta=deltas)
def test_more_epsilon_is_never_noisier(case, epsilon, delta):
    one = priced(case, epsilon=epsilon, delta=delta)
    two = priced(case, epsilon=2 * epsilon, delta=delta)
    assert two.rank_epsilon > one.rank_epsilon
    # Both kinds of noise, relative to what a unit moves in the norm of each.
    if one.noise.kind == two.noise.kind:
        assert two.noise.multiplier < one.noise.multiplier


@settings(max_examples=40, deadline=None)
@given(case=st.sampled_from(EASY), epsilon=epsilons, delta=deltas)
def test_what_is_paid_is_used(case, epsilon, delta):
    """The loss is not far below the promise: paying for noise that nobody needs is a loss, too."""
    found = priced(case, epsilon=epsilon, delta=delta)
    assert certified_epsilon(found.loss, delta=0) >= float(epsilon) * (1 - 1e-6) or (
        certified_delta(found.loss, epsilon=float(epsilon) * 0.7) > 0
    )


@settings(max_examples=30, deadline=None)
@given(case=st.sampled_from(EASY), epsilon=epsilons, delta=deltas)
def test_the_loss_names_the_noise_that_is_used(case, epsilon, delta):
    """Noise, draws and choices are what the loss says; nothing is released besides."""
    found = priced(case, epsilon=epsilon, delta=delta)
    catalog = oracle.catalog_of(case, TYPES)
    layout = lay_out(parse(case.sql, catalog, periods=case.periods))
    noisy = len(layout.families) + layout.with_units + len(layout.distinct)
    parts = dict(compose([(found.loss, 1)]).parts)
    if noisy:
        kind = LaplaceLoss if found.noise.kind == "laplace" else GaussianLoss
        assert parts[kind(noise_multiplier=found.noise.multiplier)] == noisy
    spent = sum(
        n * Fraction(loss.epsilon)
        for loss, n in compose([(found.loss, 1)]).parts
        if type(loss).__name__ == "BoundedRangeLoss"
    )
    # A tenth of each quantile's price tells how many rows its groups have.
    sizes = [LaplaceLoss(noise_multiplier=10 / found.rank_epsilon)] * len(layout.ranks)
    assert all(size in dict(compose([(found.loss, 1)]).parts) for size in sizes)
    wanted = len(layout.ranks) * found.rank_epsilon * Fraction(9, 10)
    assert spent == wanted
    if found.inferences:
        assert parts[found.inference_noise.loss] == len(found.inferences)


# Through the ledger

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region",
    "SELECT MEDIAN(age) AS q, AVG(income) AS m FROM people",
    "SELECT SUM(income) AS s, COUNT(DISTINCT person) AS u FROM people",
    "SELECT place, COUNT(*) AS n, AVG(spend) AS m FROM visits GROUP BY place",
    "SELECT COUNT(DISTINCT place) AS d FROM visits",
    "SELECT CORR(age, income) AS c FROM people WHERE age > 30",
)


@pytest.fixture
def protected(tmp_path):
    frames = oracle.frames()
    tables = {name: pa.Table.from_pandas(frames[name]) for name in ("people", "visits")}
    with protect(
        tables,
        name="town",
        unit="person",
        guarantee=Guarantee(epsilon=50, delta=1e-4),
        ledger=tmp_path / "budget.db",
        columns={"people": {"age": {"bounds": (0, 120)}}},
    ) as opened:
        yield opened


@pytest.mark.lengthy
def test_the_ledger_is_charged_what_was_quoted(protected):
    for i, question in enumerate(QUESTIONS):
        # Enough for the few people there are: what was released may tell that they are too few.
        terms = {"epsilon": 3 + 0.1 * i, "delta": 10.0 ** (-6 - i % 3)}
        quote = protected.quote(question, **terms)
        before = protected.account.used
        assert quote.budgets.used == pytest.approx(before, abs=1e-12)
        answer = protected.sql(question, **terms)
        assert answer.loss == quote.loss
        assert answer.receipt.loss == quote.loss
        assert protected.account.used == pytest.approx(quote.budgets.used_after, abs=1e-12)
        charges = [e for e in protected.account.history() if e["kind"] == "charge"]
        assert len(charges) == i + 1, "one charge for one answer"
        assert certified_epsilon(quote.loss, delta=terms["delta"]) <= terms["epsilon"] * (1 + 1e-9)
    protected.account.ledger.verify()


@pytest.mark.lengthy
def test_a_share_of_the_budget_buys_that_share(protected):
    for question, share in zip(QUESTIONS, ("1%", "2%", "5%", 0.01, "0.5%", "3%"), strict=False):
        before = protected.account.used
        protected.sql(question, share=share, delta=1e-9)
        offered = float(str(share).rstrip("%")) / (100 if str(share).endswith("%") else 1)
        spent = protected.account.used - before
        assert spent <= offered * (1 + 1e-9)
        assert spent >= offered * 0.98, "what is offered is used"


def test_a_width_is_met_with_the_least_price(protected):
    question = "SELECT COUNT(DISTINCT person) AS n FROM people"
    quote = protected.quote(question, within=10)
    assert quote.expected[0].half_width <= 10
    less = protected.quote(question, epsilon=quote.epsilon * 0.98)
    assert less.expected[0].half_width > 10
    relative = protected.quote(question, within="5%", of=200)
    assert relative.epsilon == quote.epsilon


@pytest.mark.lengthy
@settings(max_examples=4, deadline=None)
@given(
    chosen=st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=5, unique=True),
    epsilon=st.floats(0.05, 5),
    power=st.floats(-9, -5),
)
def test_plans_cost_at_most_what_was_asked(chosen, epsilon, power, tmp_path_factory):
    frames, folder = oracle.frames(), tmp_path_factory.mktemp("plan")
    tables = {name: pa.Table.from_pandas(frames[name]) for name in ("people", "visits")}
    with protect(
        tables,
        name="town",
        unit="person",
        guarantee=Guarantee(epsilon=50, delta=1e-4),
        ledger=folder / "budget.db",
        rows=4,
    ) as opened:
        delta = 10**power
        plan = opened.plan(chosen, epsilon=epsilon, delta=delta)
        assert certified_delta(plan.loss, epsilon=epsilon) <= delta * (1 + 1e-9)
        parts = compose([(prepared.price.loss, 1) for _, prepared in plan.parts])
        assert parts == plan.loss
        after = plan.quote.used_after
        answers = plan.release()
        assert len(answers) == len(chosen)
        charges = [e for e in opened.account.history() if e["kind"] == "charge"]
        assert len(charges) == len(plan.parts)
        # Rounding is towards more, once for each charge.
        assert opened.account.used == pytest.approx(after, rel=1e-6)


@pytest.mark.lengthy
def test_a_watch_is_paid_before_it_looks(protected):
    questions = [
        f"SELECT COUNT(DISTINCT person) FROM people WHERE age > {a}" for a in range(20, 80)
    ]
    watch = protected.watch(questions, threshold=30, positives=2, epsilon=1)
    spent = protected.account.used
    assert certified_epsilon(watch.receipt.loss, delta=0) <= 1 + 1e-9
    alerts = []
    while watch.positives_left and len(alerts) < 50:
        alerts.append(watch.ask())
    assert protected.account.used == spent
    assert sum(map(len, alerts)) == 2 or len(alerts) == 50
