"""What a text model gives away of secrets that were planted in its training."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np

from discreet._exact import Number, probability, refusal, whole
from discreet._rates import interval
from discreet.attacks.membership.observations import Floats, floats
from discreet.attacks.report import AttackReport
from discreet.errors import DataError, ParameterError
from discreet.privacy import Guarantee, detection

__all__ = ["PlantedText", "TextModel", "exposure", "planted_text", "run_on_text"]

_DIGITS = "0123456789"


@runtime_checkable
class TextModel(Protocol):
    """Any text model under attack: it scores endings and goes on with a text.

    >>> from discreet.attacks.membership import CharacterModel
    >>> issubclass(CharacterModel, TextModel)
    True
    """

    def log_likelihoods(self, prefix: str, endings: Sequence[str], /) -> Floats:
        """Return the log-probability of each ending after a prefix.

        >>> TextModel.log_likelihoods  # doctest: +ELLIPSIS
        <function TextModel.log_likelihoods at ...>
        """

    def complete(self, prefix: str, /, *, length: int) -> str:
        """Write on from a prefix, each time the likeliest character.

        >>> TextModel.complete  # doctest: +ELLIPSIS
        <function TextModel.complete at ...>
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedText:
    """Hold a training text and the secrets in it, each behind the words that lead to it.

    >>> PlantedText(lines=("box 7: 12",), secrets={"box 7: ": "12"}, times=1).times
    1
    """

    lines: tuple[str, ...]
    secrets: Mapping[str, str]
    times: int  # how many lines hold the same secret


def planted_text(
    *, lines: int = 300, secrets: int = 10, digits: int = 4, times: int = 1, seed: int = 0
) -> PlantedText:
    """Generate a text of plain sentences, and plant codes of random digits in it.

    >>> text = planted_text(lines=3, secrets=1)
    >>> len(text.lines), list(text.secrets)
    (4, ['box 00: '])
    """
    if whole(secrets, name="secrets") > 100:
        raise refusal("secrets", "at most 100, since boxes have two digits", secrets)
    if whole(digits, name="digits") > 6:
        raise refusal("digits", "at most 6, since all codes are tried", digits)
    dice = np.random.default_rng(seed)
    words = (
        ("the", "a", "one", "no"),
        ("red", "old", "small", "quiet"),
        ("boat", "train", "bird", "clock"),
        ("left", "came", "stopped", "turned"),
        ("at noon", "in may", "by night", "at last"),
    )
    told = [
        " ".join(choices[dice.integers(len(choices))] for choices in words)
        for _ in range(whole(lines, name="lines"))
    ]
    codes = {
        f"box {box:02}: ": "".join(_DIGITS[each] for each in dice.integers(0, 10, digits))
        for box in range(secrets)
    }
    told += [prefix + code for prefix, code in codes.items()] * whole(times, name="times")
    order = dice.permutation(len(told))
    return PlantedText(lines=tuple(told[i] for i in order), secrets=codes, times=times)


def exposure(model: TextModel, *, prefix: str, secret: str, letters: str = _DIGITS) -> float:
    """Return the bits by which a model shortens the search for a secret [CLEKS19].

    It is log2(number of candidates / rank of the secret among them), where the candidates are all
    texts of these ``letters`` that are as long: 0 to log2(candidates), about 1.4 by chance.
    Candidates as likely as the secret come before it.

    >>> class Fixed:
    ...     def log_likelihoods(self, prefix, endings):
    ...         return np.array([-float(ending) for ending in endings])
    >>> exposure(Fixed(), prefix="code ", secret="24"), exposure(Fixed(), prefix="", secret="99")
    (2.0, 0.0)
    """
    if not secret or len(letters) ** len(secret) > 10**6 or set(secret) - set(letters):
        raise ParameterError(
            "secret must consist of the given letters, with at most 10**6 candidates.",
            parameter="secret",
        )
    candidates = ["".join(each) for each in itertools.product(letters, repeat=len(secret))]
    scores = floats(model.log_likelihoods(prefix, candidates), "log_likelihoods")
    if scores.shape != (len(candidates),) or np.isnan(scores).any():
        raise DataError("log_likelihoods must give each ending a number, none of them NaN.")
    rank = int((scores >= scores[candidates.index(secret)]).sum())
    return math.log2(len(candidates)) - math.log2(rank)


def run_on_text(
    model: TextModel,
    text: PlantedText,
    *,
    guarantee: Guarantee | None = None,
    confidence: Number = 0.95,
) -> AttackReport:
    """Ask a text model for the secrets in its training, by the words that lead to them.

    ``guarantee`` is for one line; a secret on several lines has that of a group.

    Claim: with a guarantee, no attack finds a secret of k equally likely ones with a larger
    probability than ``allowed``.

    Why: without its lines the model knows nothing of a secret, so any attack names it with
    probability 1/k; with them at most e^epsilon / k + delta, by the guarantee [HMB23].

    >>> text = planted_text(lines=50, secrets=2, digits=2)
    >>> class Guessing:
    ...     def log_likelihoods(self, prefix, endings):
    ...         return np.arange(len(endings), dtype=float)
    ...     def complete(self, prefix, *, length):
    ...         return "9" * length
    >>> run_on_text(Guessing(), text).success
    0.0
    """
    spare = float(probability(confidence, name="confidence"))
    if len({len(secret) for secret in text.secrets.values()}) != 1:
        raise DataError("secrets must be planted, at least one, all equally long.")
    shown = {
        prefix: model.complete(prefix, length=len(secret))
        for prefix, secret in text.secrets.items()
    }
    found = sum(shown[prefix] == secret for prefix, secret in text.secrets.items())
    bits = [
        exposure(model, prefix=prefix, secret=secret) for prefix, secret in text.secrets.items()
    ]
    most = math.log2(10) * len(next(iter(text.secrets.values())))
    many = len(text.secrets)
    allowed = None
    if guarantee is not None:
        allowed = detection(guarantee.group(text.times), false_alarms=2**-most)
    return AttackReport(
        attack="extraction",
        measure="planted secrets written out",
        success=found / many,
        baseline=2**-most,
        interval=interval(found, trials=many, confidence=spare),
        confidence=spare,
        trials=many,
        summary=(
            f"{found} of {many} planted secrets are written out when asked for; mean exposure is "
            f"{np.mean(bits):.1f} bits of {most:.1f}."
        ),
        allowed=allowed,
        details={"exposure": list(bits), "largest_exposure": most, "times": text.times},
    )
