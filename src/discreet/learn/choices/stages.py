"""Settings that change on the way, by a schedule that was fixed before the run began."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final, Generic, TypeVar, final

from discreet._exact import show, whole
from discreet.accounting import Loss
from discreet.errors import ParameterError
from discreet.learn.choices.sampling import Sampling

__all__ = ["Noises", "Stages", "loss_of_steps"]

T = TypeVar("T")
S = TypeVar("S")

Noises = Mapping[float, int]
"""How many steps were made with which noise multiplier: all that their price depends on."""

_MOST: Final = 100  # each is a loss of its own, in the accounting and in a ledger's entries


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Stages(Generic[T]):
    """Let a run's noise multiplier, or its clip, change after so many steps.

    Each pair is a number of steps and the value in them; ``then`` is the value in all steps that
    follow, those by which a run is extended included. The schedule is public, so it must not be
    made by looking at the data.

    Claim: none of its own. A step costs what its own noise multiplier says, whatever its clip is,
    since the noise is relative to the clip; the steps are composed as they are planned.

    Why: which value a step has is fixed beforehand, so that each step has a loss of its own
    whatever came before, and these compose [ZDW22, Theorem 10].

    >>> noise = Stages((100, 2.0), (50, 1.5), then=1.0)
    >>> noise.at(99), noise.at(100), noise.at(10_000)
    (2.0, 1.5, 1.0)
    """

    pairs: tuple[tuple[int, T], ...]
    then: T

    def __init__(self, *pairs: tuple[int, T], then: T) -> None:
        given: tuple[object, ...] = pairs
        for pair in given:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ParameterError(
                    f"each of the stages must be a pair (steps, value), got {show(pair)}. Write "
                    "Stages((100, 2.0), then=1.0): 2.0 in 100 steps, then 1.0.",
                    parameter="stages",
                )
        if len(pairs) > _MOST:
            raise ParameterError(
                f"a schedule has at most {_MOST} stages, got {len(pairs)}. Each has a price of its "
                "own: let one last for more steps.",
                parameter="stages",
            )
        kept = tuple((whole(n, name="the steps of a stage"), value) for n, value in pairs)
        object.__setattr__(self, "pairs", kept)
        object.__setattr__(self, "then", then)

    @classmethod
    def of(cls, value: "T | Stages[T]", /) -> "Stages[T]":
        """Return a schedule as it is, and anything else as the value in all steps.

        >>> Stages.of(1.5)
        Stages(then=1.5)
        """
        return value if isinstance(value, Stages) else cls(then=value)

    def __repr__(self) -> str:
        return f"Stages({''.join(f'({n}, {v!r}), ' for n, v in self.pairs)}then={self.then!r})"

    @property
    def is_constant(self) -> bool:
        """Whether nothing ever changes."""
        return not self.pairs

    @property
    def length(self) -> int:
        """The steps before the last change."""
        return sum(n for n, _ in self.pairs)

    @property
    def values(self) -> tuple[T, ...]:
        """The values, one after the other."""
        return (*(value for _, value in self.pairs), self.then)

    def at(self, number: int, /) -> T:
        """Return the value in a step; the first one has the number 0.

        >>> Stages((3, "a"), then="b").at(2)
        'a'
        """
        for steps, value in self.pairs:
            if number < steps:
                return value
            number -= steps
        return self.then

    def spans(self, start: int, stop: int, /) -> Iterator[tuple[T, int]]:
        """Yield what the steps from ``start`` up to ``stop`` have, and how many of them do.

        >>> list(Stages((3, "a"), then="b").spans(1, 7))
        [('a', 2), ('b', 4)]
        """
        end = 0
        for steps, value in self.pairs:
            begin, end = max(start, end), end + steps
            if begin < min(end, stop):
                yield value, min(end, stop) - begin
        if max(start, end) < stop:
            yield self.then, stop - max(start, end)

    def changed(self, function: Callable[[T], S], /) -> "Stages[S]":
        """Return the same schedule of other values.

        >>> Stages((3, 2), then=1).changed(float)
        Stages((3, 2.0), then=1.0)
        """
        return self.with_values([function(value) for value in self.values])

    def with_values(self, values: Iterable[S], /) -> "Stages[S]":
        """Return the same schedule of these values.

        >>> Stages((3, 2), then=1).with_values("ab")
        Stages((3, 'a'), then='b')
        """
        *first, then = values
        lengths = [n for n, _ in self.pairs]
        return Stages(*zip(lengths, first, strict=True), then=then)

    def check(self, steps: int, *, name: str) -> None:
        """Refuse a schedule that is longer than the run.

        >>> Stages((30, 2), then=1).check(20, name="clip")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: the stages of clip take 30 steps, but the run has 20. ...
        """
        if self.length > steps:
            raise ParameterError(
                f"the stages of {name} take {self.length} steps, but the run has {steps}. Nothing "
                "was spent. Shorten them; then= is for the steps that are left.",
                parameter=name,
            )

    def told(self, show: Callable[[T], str], /) -> str:
        """Write it in words.

        >>> Stages((30, 2.0), (5, 1.5), then=1.0).told("{:g}".format)
        '2 for 30 steps, 1.5 for 5 steps, then 1'
        """
        stages = "".join(f"{show(value)} for {n} steps, " for n, value in self.pairs)
        return f"{stages}{'then ' if stages else ''}{show(self.then)}"


def loss_of_steps(sampling: Sampling, noises: Iterable[tuple[float, int]], /) -> Loss:
    """Return what steps cost together: so many with this noise multiplier, so many with that.

    >>> from discreet.learn.choices.sampling import FullBatch
    >>> loss_of_steps(FullBatch(population=5), [(2.0, 3), (1.0, 1)])
    ComposedLoss(GaussianLoss(noise_multiplier=1.0), 3 x GaussianLoss(noise_multiplier=2.0))
    """
    return reduce(add, (sampling.loss(noise_multiplier=z) * n for z, n in noises))
