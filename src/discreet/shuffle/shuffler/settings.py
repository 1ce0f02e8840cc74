"""What a shuffler was set up for, once and for all."""

import json
from dataclasses import dataclass
from typing import Final, final

from discreet._exact import refusal, whole
from discreet._json import read_json
from discreet.errors import ParameterError
from discreet.local.wire import Parameters, read_parameters
from discreet.shuffle.envelopes.keys import SealingKey
from discreet.shuffle.envelopes.sealing import Envelopes

__all__ = ["ShufflerSettings"]

_LARGEST: Final = 1 << 29  # bytes of a batch
_MOST: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerSettings:
    """What a shuffler does: for which collection and analyser, and how many hide one another.

    No batch leaves with fewer than ``minimum`` different senders. Of each, ``limit`` envelopes go
    into a batch. ``dummies`` reports of random values are added to every batch. Whether a batch can
    leave is looked at every ``seconds``, and never when somebody asks: a batch that left with its
    last envelope would tell when that one came.

    >>> from discreet import local
    >>> from discreet.local.wire import parameters_of
    >>> from discreet.shuffle import UnsealingKey
    >>> law = local.DirectResponse(domain=4, epsilon=1)
    >>> ShufflerSettings(parameters=parameters_of(law, name="tea", a_day=1, lifetime=1),
    ...                  analyser=UnsealingKey.generate().public, minimum=1000).limit
    1
    """

    parameters: Parameters
    analyser: SealingKey
    minimum: int
    limit: int = 1
    dummies: int = 0
    seconds: float = 60.0

    def __post_init__(self) -> None:
        hint = "It is how many different senders a report is hidden among."
        whole(self.minimum, name="minimum", minimum=2, hint=hint)
        whole(self.limit, name="limit")
        whole(self.dummies, name="dummies", minimum=0)
        if not 0 < self.seconds < 1e6:  # phrased so that NaN fails too
            raise refusal("seconds", "above 0 and below a million", self.seconds)
        if self.minimum + self.dummies > self.most:
            raise refusal("minimum", f"at most {self.most} with the dummies", self.minimum)
        if self.dummies and not hasattr(self.parameters.randomiser, "domain"):
            raise ParameterError(
                "dummies are reports of random values, which only a known domain has. Leave them "
                "out.",
                parameter="dummies",
            )

    @property
    def envelopes(self) -> Envelopes:
        """How the collection's envelopes are made."""
        return Envelopes.of(self.parameters)

    @property
    def most(self) -> int:
        """How many envelopes may wait; then senders are asked to come later."""
        return min(_MOST, _LARGEST // self.envelopes.length)

    @property
    def text(self) -> str:
        """The settings as they are kept."""
        members = {name: getattr(self, name) for name in ("minimum", "limit", "dummies", "seconds")}
        members["parameters"] = self.parameters.canonical.decode()
        members["analyser"] = self.analyser.text
        return json.dumps(members, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> "ShufflerSettings":
        """Return the settings that were kept.

        >>> from discreet.testing import temporary_shuffle
        >>> with temporary_shuffle(minimum=2) as halves:
        ...     settings = halves.shuffler.settings
        >>> ShufflerSettings.read(settings.text) == settings
        True
        """
        members = read_json(text)
        members["parameters"] = read_parameters(members["parameters"])
        members["analyser"] = SealingKey.read(members["analyser"])
        return cls(**members)
