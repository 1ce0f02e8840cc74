"""Conversions between neighbouring relations, checked on whole families of tiny mechanisms."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.privacy import Guarantee, Neighbours, convert

# A world small enough to look at every pair of datasets: records are letters, "0" is the null
# record, a dataset is a sorted string of at most three, a mechanism is Pr[output 1] for each.
LETTERS = "ab"
LARGEST = 3


def datasets(alphabet):
    return [
        "".join(d) for n in range(LARGEST + 1) for d in combinations_with_replacement(alphabet, n)
    ]


ALL = sorted({"".join(sorted(d)) for d in datasets("0" + LETTERS)})
PLAIN = [d for d in ALL if "0" not in d]


def changed(d, old, new):
    return "".join(sorted(d.replace(old, new, 1)))


def pairs(relation, *, records, domain):
    """Every neighbouring pair of the domain, where units hold one of ``records``."""
    for d, x in product(domain, records):
        if relation is Neighbours.add_remove and len(d) < LARGEST:
            yield d, "".join(sorted(d + x))
        elif relation is Neighbours.replace_one:
            yield from ((d, changed(d, y, x)) for y in records if y in d)
        elif relation is Neighbours.zero_out and x in d and x != "0":
            yield d, changed(d, x, "0")


def tightest_delta(chances, neighbours, epsilon_factor):
    """The smallest delta at e^epsilon = epsilon_factor over the given pairs, exactly."""
    worst = Fraction(0)
    for d, e in neighbours:
        for p, q in ((chances[d], chances[e]), (chances[e], chances[d])):
            worst = max(worst, p - epsilon_factor * q, (1 - p) - epsilon_factor * (1 - q))
    return worst


@st.composite
def mechanisms(draw, *, ignores_null):
    chance = st.fractions(0, 1, max_denominator=50)
    table = {d: draw(chance) for d in (PLAIN if ignores_null else ALL)}
    return {d: table[d.replace("0", "")] for d in ALL} if ignores_null else table


def check(chances, source, target, *, admissible, ignored, doubled):
    # e^epsilon = 2, so that all stays rational: two steps give e^(2 epsilon) = 4 and 3 delta.
    covered = "0" + LETTERS if admissible else LETTERS
    domain = ALL if admissible or source is Neighbours.zero_out else PLAIN
    before = tightest_delta(chances, pairs(source, records=covered, domain=domain), 2)
    # A target pair exists only where the source guarantee has room for its middle dataset.
    wanted = [
        (d, e)
        for d, e in pairs(target, records=LETTERS, domain=ALL if target == "zero_out" else PLAIN)
        if max(len(d), len(e)) < LARGEST
    ]
    after = tightest_delta(chances, wanted, 4 if doubled else 2)
    assert after <= (3 if doubled else 1) * before
    assert convert(
        Guarantee(epsilon=1, delta=0),
        source=source,
        target=target,
        null_is_admissible=admissible,
        null_is_ignored=ignored,
    ) == Guarantee(epsilon=2 if doubled else 1)


CASES = [  # source, target, admissible, ignored, doubled: the six claims, in their order
    ("add_remove", "replace_one", False, False, True),
    ("zero_out", "replace_one", False, False, True),
    ("replace_one", "zero_out", True, False, False),
    ("add_remove", "zero_out", False, True, False),
    ("add_remove", "zero_out", True, False, True),
    ("zero_out", "add_remove", False, True, False),
    ("replace_one", "add_remove", True, True, False),
]


@pytest.mark.lengthy
@pytest.mark.parametrize(("source", "target", "admissible", "ignored", "doubled"), CASES)
@given(data=st.data())
def test_no_mechanism_contradicts_a_conversion(source, target, admissible, ignored, doubled, data):
    chances = data.draw(mechanisms(ignores_null=ignored))
    check(
        chances,
        Neighbours(source),
        Neighbours(target),
        admissible=admissible,
        ignored=ignored,
        doubled=doubled,
    )


def test_publishing_the_size_is_why_replace_one_gives_no_add_remove():
    chances = {d: Fraction(len(d) == 2) for d in ALL}
    everything = "0" + LETTERS
    for fixed_size in (Neighbours.replace_one, Neighbours.zero_out):
        assert tightest_delta(chances, pairs(fixed_size, records=everything, domain=ALL), 1) == 0
    assert tightest_delta(chances, pairs(Neighbours.add_remove, records="ab", domain=ALL), 99) == 1


REFUSED = [
    ("replace_one", "add_remove", False, False),
    ("replace_one", "add_remove", True, False),
    ("replace_one", "add_remove", False, True),
    ("replace_one", "zero_out", False, False),
    ("replace_one", "zero_out", False, True),
    ("zero_out", "add_remove", False, False),
    ("zero_out", "add_remove", True, False),
    ("add_remove", "zero_out", False, False),
]


@pytest.mark.parametrize(("source", "target", "admissible", "ignored"), REFUSED)
def test_unsound_steps_are_refused_with_the_way_out(source, target, admissible, ignored):
    with pytest.raises(ParameterError, match=f"{source} does not give {target}") as caught:
        convert(
            Guarantee(epsilon=1),
            source=source,
            target=target,
            null_is_admissible=admissible,
            null_is_ignored=ignored,
        )
    assert "null_is_" in str(caught.value)
    assert "calibrate the mechanism anew" in str(caught.value)


@pytest.mark.parametrize("relation", Neighbours)
def test_a_relation_to_itself_changes_nothing(relation):
    g = Guarantee(epsilon=Fraction(1, 3), delta=1e-9)
    assert convert(g, source=relation, target=str(relation)) is g


def test_unknown_relations_are_refused_by_name():
    with pytest.raises(ParameterError, match=r"^source must be one of add_remove, replace_one"):
        convert(Guarantee(epsilon=1), source="unbounded", target="add_remove")
    with pytest.raises(ParameterError, match=r"^target must be one of"):
        convert(Guarantee(epsilon=1), source="add_remove", target=3)


@given(epsilon=st.floats(0, 1e9), delta=st.floats(0, 1))
def test_two_steps_cap_and_never_overflow(epsilon, delta):
    twice = convert(
        Guarantee(epsilon=epsilon, delta=delta), source="add_remove", target="replace_one"
    )
    assert twice.epsilon == 2 * epsilon
    assert delta <= twice.delta <= 1


def test_names_are_the_words_in_json():
    assert [str(r) for r in Neighbours] == ["add_remove", "replace_one", "zero_out"]
