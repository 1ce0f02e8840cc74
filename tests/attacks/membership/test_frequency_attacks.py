"""Who was in a study, from published frequencies, and what private ones leave of it."""

import numpy as np
import pytest

from discreet.attacks import membership as m
from discreet.errors import DataError
from discreet.privacy import Guarantee

STATISTICS = [m.homer, m.likelihood_ratio, m.inner_product]
SURE = 1 - 1e-6


@pytest.fixture(scope="module")
def people():
    everyone = m.generated_genomes(3100, positions=2000)
    return np.split(everyone, [100, 600])


@pytest.mark.parametrize("statistic", STATISTICS)
def test_published_frequencies_give_members_away_and_private_ones_do_not(people, statistic):
    """At 99.9999% confidence; noise a thousandth as large would fail the second statement."""
    study, panel, others = people
    guarantee = Guarantee(epsilon=1, delta=1e-6)
    common = {
        "members": study, "others": others, "reference": m.frequencies(panel),
        "statistic": statistic, "false_positive_rate": 0.01, "confidence": SURE,
    }  # fmt: skip
    before = m.run_on_frequencies(m.frequencies(study), **common)
    assert before.interval[0] > 0.2
    released = m.private_frequencies(study, epsilon=1, delta=1e-6)
    after = m.run_on_frequencies(released, guarantee=guarantee, **common)
    assert after.interval[0] <= after.allowed < 0.03
    barely = m.private_frequencies(study, epsilon=1000, delta=1e-6)
    assert m.run_on_frequencies(barely, guarantee=guarantee, **common).interval[0] > 0.03


def test_two_people_in_each_others_place_are_within_the_sensitivity_that_is_paid_for():
    positions = 37
    extremes = np.array([[0] * positions, [2] * positions], dtype=np.int8)
    change = np.linalg.norm(extremes[0].astype(float) - extremes[1])
    assert change <= 2 * np.sqrt(positions)


def test_statistics_follow_their_formulas(people):
    study, panel, _ = people
    released, reference = m.frequencies(study), m.frequencies(panel)
    one = study[0].astype(float)
    ratio = one * np.log(released / reference) + (2 - one) * np.log(
        (1 - released) / (1 - reference)
    )
    nearer = np.abs(one / 2 - reference) - np.abs(one / 2 - released)
    product = (one / 2 - reference) @ (released - reference)
    assert m.likelihood_ratio(study[:1], released, reference)[0] == pytest.approx(
        ratio.sum(), rel=1e-3
    )
    assert m.homer(study[:1], released, reference)[0] == pytest.approx(nearer.sum(), rel=1e-3)
    assert m.inner_product(study[:1], released, reference)[0] == pytest.approx(product, rel=1e-3)


def test_what_are_no_genomes_is_refused(people):
    study, panel, others = people
    with pytest.raises(DataError, match="int8"):
        m.frequencies(np.zeros((2, 2)))
    with pytest.raises(DataError, match="0, 1 or 2"):
        m.frequencies(np.full((2, 2), 3, dtype=np.int8))
    with pytest.raises(DataError, match="positions"):
        m.run_on_frequencies(
            m.frequencies(study)[:5], members=study, others=others, reference=m.frequencies(panel)
        )


def test_lists_are_read_and_a_statistic_has_a_score_for_each(people):
    study, rest = people[1][:20], people[1][20:]
    told, facts = m.frequencies(study), {"members": study, "others": rest}
    facts["false_positive_rate"] = 0.1
    usual = m.frequencies(rest)
    arrays = m.run_on_frequencies(told, reference=usual, **facts)
    assert m.run_on_frequencies(told.tolist(), reference=usual.tolist(), **facts) == arrays
    for scores in (np.zeros(5), "none"):
        with pytest.raises(DataError, match="score"):
            m.run_on_frequencies(told, reference=usual, statistic=lambda *_, s=scores: s, **facts)
    with pytest.raises(DataError, match="matrix"):
        m.frequencies([[0, 1]])
