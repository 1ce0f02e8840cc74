"""What a guarantee means, as data."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from discreet._exact import Number, exact, float_up, probability, refusal, whole
from discreet.cli.numbers import for_json
from discreet.privacy import (
    Guarantee,
    Neighbours,
    advantage,
    advised_delta,
    convert,
    odds,
    posterior_bound,
    strength,
    success,
)

GROUPS: Final = (2, 5, 10)
PRIORS: Final = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
EVEN: Final = Fraction(1, 2)
MOST_PEOPLE: Final = 10**18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRisk:
    """What delta allows among n people.

    >>> DeltaRisk.among(1000, Guarantee(epsilon=1, delta=1e-6)).is_far_below
    True
    """

    n: int
    exposed: float  # expected number of people published outright, at worst
    chance: float  # that it is anyone at all, when each is published independently
    advised: float
    is_far_below: bool
    cautious: float  # 1/n^2, what many take
    is_cautious: bool

    @classmethod
    def among(cls, n: int, guarantee: Guarantee) -> "DeltaRisk":
        """Work it out for a guarantee."""
        delta = exact(guarantee.delta, name="delta")
        none = -math.inf if delta == 1 else n * math.log1p(-float(delta))
        return cls(
            n=n,
            exposed=float(delta * n),
            chance=-math.expm1(none),
            advised=float(advised_delta(n=n)),
            is_far_below=delta <= float_up(advised_delta(n=n)),  # as typed: 1e-4 is above 1/10000
            cautious=float(Fraction(1, n * n)),
            is_cautious=delta <= float_up(Fraction(1, n * n)),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything ``discreet explain`` says, as data.

    >>> explanation(epsilon=1).strength
    'strong'
    """

    guarantee: Guarantee
    beliefs: tuple[tuple[Number, Fraction], ...]  # before, and at most after
    delta_risk: DeltaRisk | None

    @property
    def strength(self) -> str:
        """The usual band of epsilon."""
        return strength(self.guarantee)

    @property
    def either_answer(self) -> Guarantee:
        """The same promise about *what* somebody answered rather than whether they did."""
        return convert(self.guarantee, source=Neighbours.add_remove, target=Neighbours.replace_one)

    @property
    def groups(self) -> tuple[tuple[int, Guarantee], ...]:
        """The promise to groups of several people."""
        return tuple((k, self.guarantee.group(k)) for k in GROUPS)

    def to_dict(self) -> dict[str, object]:
        """Return the facts as JSON-ready data."""
        risk = self.delta_risk
        return {
            **_plain(self.guarantee),
            "neighbours": str(Neighbours.add_remove),
            "strength": self.strength,
            "odds": odds(self.guarantee)._asdict(),
            "attacker": {
                "prior": 0.5,
                "success": success(self.guarantee, prior=EVEN),
                "advantage": advantage(self.guarantee),
            },
            "beliefs": [
                {"prior": for_json(before), "posterior": float_up(after)}
                for before, after in self.beliefs
            ],
            "replace_one": _with_odds(self.either_answer),
            "groups": [{"size": k, **_with_odds(group)} for k, group in self.groups],
            "delta_risk": None
            if risk is None
            else {
                "n": risk.n,
                "expected_exposed": risk.exposed,
                "chance_of_any": risk.chance,
                "advised_delta": risk.advised,
                "is_far_below": risk.is_far_below,
                "cautious_delta": risk.cautious,
                "is_cautious": risk.is_cautious,
            },
        }


def explanation(
    *, epsilon: Number, delta: Number = 0, n: Number | None = None, prior: Number | None = None
) -> Explanation:
    """Gather what a guarantee means; refuse bad numbers by name.

    >>> explanation(epsilon=1, prior=0.1).beliefs[0][1] < 0.2320
    True
    """
    guarantee = Guarantee(epsilon=epsilon, delta=delta)
    priors: tuple[Number, ...] = PRIORS
    if prior is not None:
        probability(prior, name="prior", zero=True, one=True)
        priors = (prior,)
    risk = None
    if n is not None:
        people = whole(n, name="n", hint="It is the number of people in the data.")
        if people > MOST_PEOPLE:
            raise refusal("n", "at most 10**18, a number of people", n)
        risk = DeltaRisk.among(people, guarantee)
    return Explanation(
        guarantee=guarantee,
        beliefs=tuple(
            (p, posterior_bound(guarantee, prior=exact(p, name="prior"))) for p in priors
        ),
        delta_risk=risk,
    )


def _plain(guarantee: Guarantee) -> dict[str, object]:
    return {"epsilon": for_json(guarantee.epsilon), "delta": for_json(guarantee.delta)}


def _with_odds(guarantee: Guarantee) -> dict[str, object]:
    return {**_plain(guarantee), "odds": odds(guarantee)._asdict()}
