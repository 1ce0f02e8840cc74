"""What an analyser was set up for, once and for all."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet._exact import Number, exact, plain, probability, whole
from discreet._json import read_json
from discreet.errors import DataError
from discreet.local.wire import Parameters, read_parameters
from discreet.shuffle.analyser.amplification import Amplification, local_epsilon
from discreet.shuffle.batches.batch import BatchFacts
from discreet.shuffle.envelopes.sealing import Envelopes

__all__ = ["AnalyserSettings"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyserSettings:
    """What an analyser opens, and what it assumes of the senders.

    It opens batches of at least ``minimum`` senders. ``honest`` is the share of them that it takes
    to be honest, and ``delta`` what each batch may take of the account's delta: together they
    decide what a batch costs. Nothing can check ``honest``; a smaller share is a safer claim.

    >>> from discreet import local
    >>> from discreet.local.wire import parameters_of
    >>> tea = parameters_of(local.DirectResponse(domain=4, epsilon=1), name="tea", a_day=1,
    ...                     lifetime=1)
    >>> AnalyserSettings(parameters=tea, minimum=1000, honest=0.9, delta=1e-8).honest
    0.9
    """

    parameters: Parameters
    minimum: int
    honest: Number
    delta: Number

    def __post_init__(self) -> None:
        local_epsilon(self.parameters.randomiser)
        whole(self.minimum, name="minimum", minimum=2)
        hint = "It is the share of senders that follow the protocol and tell nobody their reports."
        probability(self.honest, name="honest", zero=True, one=True, hint=hint)
        probability(self.delta, name="delta", zero=True)
        object.__setattr__(self, "honest", plain(self.honest, name="honest"))
        object.__setattr__(self, "delta", plain(self.delta, name="delta"))

    @property
    def envelopes(self) -> Envelopes:
        """How the collection's envelopes are made."""
        return Envelopes.of(self.parameters)

    def amplification(self, facts: BatchFacts) -> Amplification:
        """Return what a batch costs.

        >>> from discreet.testing import temporary_shuffle
        >>> facts = BatchFacts(collection="00" * 8, digest="00" * 8, number=1, id="00" * 16,
        ...                    senders=10_000, minimum=100, limit=1, dummies=0, envelopes=10_000,
        ...                    length=132)
        >>> with temporary_shuffle(minimum=100) as halves:
        ...     round(halves.analyser.settings.amplification(facts).epsilon_2023, 3)
        0.056
        """
        return Amplification(
            epsilon0=plain(local_epsilon(self.parameters.randomiser), name="epsilon"),
            honest=int(exact(self.honest, name="honest") * facts.senders) + facts.dummies,
            delta=self.delta,
            further=facts.limit - 1,
        )

    def check(self, facts: BatchFacts) -> None:
        """Refuse a batch of another collection, or one in which too few hide one another.

        >>> from discreet.testing import temporary_shuffle
        >>> facts = BatchFacts(collection="00" * 8, digest="00" * 8, number=1, id="00" * 16,
        ...                    senders=10_000, minimum=100, limit=1, dummies=0, envelopes=10_000,
        ...                    length=132)
        >>> with temporary_shuffle(minimum=100) as halves:
        ...     halves.analyser.settings.check(facts)
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: this batch is of another collection, or of other parameters...
        """
        ours = (self.parameters.collection, self.parameters.digest.hex(), self.envelopes.length)
        if (facts.collection, facts.digest, facts.length) != ours:
            raise DataError(
                "this batch is of another collection, or of other parameters. Nothing was opened. "
                "Give it to the analyser of that collection."
            )
        if facts.senders < self.minimum:
            raise DataError(
                f"this batch has {facts.senders} senders, fewer than the {self.minimum} that this "
                "analyser asks for. Nothing was opened. Ask the shuffler's operator to raise its "
                "minimum."
            )

    @property
    def text(self) -> str:
        """The settings as they are kept."""
        members: dict[str, Any] = {
            "parameters": self.parameters.canonical.decode(),
            "minimum": self.minimum,
        }
        for name in ("honest", "delta"):
            number = getattr(self, name)
            members[name] = str(number) if isinstance(number, Fraction) else number
        return json.dumps(members, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> "AnalyserSettings":
        """Return the settings that were kept.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     settings = halves.analyser.settings
        >>> AnalyserSettings.read(settings.text) == settings
        True
        """
        members = read_json(text)
        members["parameters"] = read_parameters(members["parameters"])
        for name in ("honest", "delta"):
            if isinstance(members[name], str):
                members[name] = Fraction(members[name])
        return cls(**members)
