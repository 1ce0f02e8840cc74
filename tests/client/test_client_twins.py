"""Every public method of local tables has a twin that takes and gives the same, or a reason."""

import inspect
from pathlib import Path

import pytest

from discreet.client import RemoteTables
from discreet.client.workload import RemoteQuote, RemoteWorkload
from discreet.errors import DiscreetError
from discreet.ledger import AccountQuote
from discreet.tables import Offer, Protected, Question, Workload, count

PAGE = Path(__file__).parents[2] / "docs/how-to/ask-a-gateway.md"
COUNT = "SELECT COUNT(*) AS n FROM people"
LOCAL = {  # what only local classes have: each is in the table of the page
    Protected: {"account", "catalog", "columns", "save", "version", "watch"},
    Workload: {"asker", "loss", "parts"},
}
HOOKS = {"on_paid", "on_ready"}
TWINS = [(Protected, RemoteTables), (Workload, RemoteWorkload)]


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("local", "remote"), TWINS)
def test_what_is_not_there_is_on_the_page(local, remote):
    missing = public(local) - public(remote)
    assert missing == LOCAL[local]
    told = PAGE.read_text()
    for name in missing if local is Protected else ():
        assert f"`{name}`" in told.partition("| not there")[2].partition("**Where")[0], name


@pytest.mark.parametrize(("local", "remote"), TWINS)
def test_methods_that_both_have_take_the_same(local, remote):
    for name in sorted(public(local) & public(remote)):
        ours, theirs = (inspect.getattr_static(kind, name) for kind in (local, remote))
        assert callable(ours) == callable(theirs), name
        if callable(ours):
            here, there = (inspect.signature(one).parameters for one in (ours, theirs))
            kept = {key: one for key, one in here.items() if key not in HOOKS}
            assert list(kept) == list(there), name
            for key, one in kept.items():
                assert (one.kind, one.default) == (there[key].kind, there[key].default), (name, key)


def test_quotes_of_workloads_can_be_asked_whether_they_fit():
    assert {"fits"} <= public(RemoteQuote) & public(AccountQuote)


def outcome(tables, act):
    """Return what comes of something: a kind of thing, or an error with all that it says."""
    try:
        made = act(tables)
    except (DiscreetError, TypeError) as error:
        told = "" if isinstance(error, TypeError) else str(error)
        facts = [getattr(error, name, None) for name in ("parameter", "code", "line", "column")]
        return type(error).__name__, told, facts
    return type(made).__name__.removeprefix("Remote"), getattr(made, "columns", None)


QUESTIONS = [
    3, None, COUNT.encode(), [COUNT], "", "  ", ";", COUNT + ";", f"{COUNT};{COUNT}",
    f"{COUNT} WHERE region = '\ud800'", f"{COUNT} WHERE region = '\0'", "SELECT", "nonsense",
    Question(table="people"), Question(table="nope").agg(n=count()),
    f"{COUNT} WHERE {300 * '('}income{300 * ')'} > 1", f"{COUNT} WHERE {40 * 'DATE('}age{40 * ')'}",
]  # fmt: skip
ODD = [0, -1, float("nan"), float("inf"), "1", "5%", "x", None, True, 1e-320, 1e308, 10**400, [1],
       b"1", "0%", "101%", 1.5]  # fmt: skip
FIELDS = ("epsilon", "delta", "share", "within", "of", "confidence", "periods", "bounding")


@pytest.mark.lengthy
def test_whatever_is_asked_comes_to_the_same(both):
    acts = {f"quote {q!r:.60}": lambda t, q=q: t.quote(q, epsilon=1) for q in QUESTIONS}
    acts |= {f"sql {q!r:.60}": lambda t, q=q: t.sql(q, epsilon=1) for q in QUESTIONS}
    acts |= {f"plan {q!r:.60}": lambda t, q=q: t.plan([q], epsilon=1) for q in QUESTIONS}
    for name in FIELDS:
        way = {} if name in ("epsilon", "share", "within") else {"epsilon": 1}
        for value in ODD:
            if name == "epsilon" and value == 10**400:
                continue  # as doubles that are sent, it is another number that is too large
            said = {**way, name: value}
            acts[f"{said!r:.60}"] = lambda t, said=said: t.quote(COUNT, **said)
    acts |= {
        "text": lambda t: t.plan(COUNT, epsilon=1),
        "weights": lambda t: t.plan([COUNT], epsilon=1, weights=[float("nan")]),
        "none": lambda t: t.plan(None, epsilon=1),
        "both": lambda t: t.quote(COUNT, Offer(epsilon=1), share="5%"),
        "keyword": lambda t: t.plan([COUNT], epsilom=1),
    }
    with both.local() as here, both.remote() as there:
        differ = {
            name: found
            for name, act in acts.items()
            if len(set(map(repr, found := (outcome(here, act), outcome(there, act))))) > 1
        }
    assert differ == {}
