"""Secrets planted in a text, asked for."""

import numpy as np
import pytest

from discreet.attacks import membership as m
from discreet.errors import DataError, ParameterError
from discreet.privacy import Guarantee


class Ranked:
    """A model for which larger numbers are likelier."""

    def log_likelihoods(self, prefix, endings):
        return np.array([float(each) for each in endings])

    def complete(self, prefix, *, length):
        return "9" * length


@pytest.mark.parametrize(("secret", "bits"), [("999", np.log2(1000)), ("500", 1), ("000", 0)])
def test_exposure_is_the_logarithm_of_the_rank(secret, bits):
    assert m.exposure(Ranked(), prefix="", secret=secret) == pytest.approx(bits)


def test_ties_count_against_the_attacker():
    class Flat:
        def log_likelihoods(self, prefix, endings):
            return np.zeros(len(endings))

    assert m.exposure(Flat(), prefix="", secret="42") == 0


@pytest.mark.lengthy
def test_an_ordinary_model_writes_secrets_out_and_a_private_one_does_not():
    """At 99.9999% confidence. Ten exposures that tell nothing sum to Gamma(10): 7 bits, 1e-11."""
    text = m.planted_text()
    guarantee = Guarantee(epsilon=2, delta=1e-5)
    before = m.run_on_text(m.train_text_model(text.lines, seed=0), text)
    private = m.train_text_model(text.lines, epochs=5, guarantee=guarantee)
    after = m.run_on_text(private, text, guarantee=guarantee, confidence=1 - 1e-6)
    assert before.success >= 0.5
    assert np.mean(before.details["exposure"]) > 11
    assert after.interval[0] <= after.allowed
    assert np.mean(after.details["exposure"]) < 7
    assert after.allowed == pytest.approx(np.exp(2) * 1e-4 + 1e-5)


def test_a_secret_on_several_lines_has_the_guarantee_of_a_group():
    text = m.planted_text(lines=5, secrets=2, digits=2, times=3)
    assert len(text.lines) == 5 + 2 * 3
    guarantee = Guarantee(epsilon=0.5, delta=1e-9)
    assert m.run_on_text(Ranked(), text, guarantee=guarantee).allowed == pytest.approx(
        np.exp(1.5) * 0.01, rel=1e-4
    )


def test_what_cannot_be_attacked_is_refused():
    with pytest.raises(ParameterError, match="secret"):
        m.exposure(Ranked(), prefix="", secret="x1")
    with pytest.raises(ParameterError, match="secret"):
        m.exposure(Ranked(), prefix="", secret="1234567")
    with pytest.raises(DataError, match="equally long"):
        m.run_on_text(Ranked(), m.PlantedText(lines=(), secrets={}, times=1))
    with pytest.raises(DataError, match="texts must consist"):
        m.train_text_model(["Ä"])


@pytest.mark.parametrize(
    "said", [[float("nan")] * 100, [0.0] * 99 + [float("nan")], [0.0], ["918273 a"] * 100]
)
def test_a_model_that_gives_no_numbers_has_no_exposure(said):
    """NaN compares with nothing, and came first of all candidates."""

    class Broken:
        def log_likelihoods(self, prefix, endings):
            return said

    with pytest.raises(DataError, match="log_likelihoods") as error:
        m.exposure(Broken(), prefix="", secret="99")
    assert "918273" not in str(error.value)


@pytest.mark.parametrize("digits", [0, -1, 1.5, 7])
def test_codes_have_from_one_to_six_digits(digits):
    with pytest.raises(ParameterError, match="digits"):
        m.planted_text(digits=digits)
