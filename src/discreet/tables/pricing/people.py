"""How many people inferring limits and bounds takes, and whether public facts show too few."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from discreet.errors import ParameterError
from discreet.tables.algorithms.noisy_profile import enough_units
from discreet.tables.model.bounds import Norm, sensitivity
from discreet.tables.model.catalog import Catalog
from discreet.tables.pricing.inferences import Inference
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import Price, prices

__all__ = ["PeopleNeeded", "people_needed", "refuse_too_few"]

_MOST: Final = Fraction(10**4)
_PRECISION: Final = 1.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleNeeded:
    """How many people are enough, almost surely, to infer what ``names`` lists.

    >>> print(PeopleNeeded(names=("bounds of income",), number=252))
    bounds of income
    """

    names: tuple[str, ...]
    number: int

    def __str__(self) -> str:
        *others, last = self.names
        return f"{', '.join(others)} and {last}" if others else last


def people_needed(prepared: Prepared, catalog: Catalog) -> PeopleNeeded | None:
    """Return how many people it takes to infer what nobody declared; None: nothing is inferred."""
    inferences = prepared.price.inferences
    if not inferences:
        return None
    named = dict.fromkeys(_name(one, prepared) for one in inferences)
    return PeopleNeeded(names=tuple(named), number=_number(prepared.price, catalog))


def refuse_too_few(prepared: Prepared, catalog: Catalog, *, people: int | None) -> None:
    """Refuse a question that ``people``, as public facts have it, are too few for."""
    needed = people_needed(prepared, catalog)
    if needed is None or people is None or people >= needed.number:
        return
    enough = _enough(prepared, catalog, people)
    pay = "No epsilon is enough" if enough is None else f"Pay epsilon={enough:.3g} or more"
    raise ParameterError(
        f"nobody declared the {needed}, and to find them at epsilon="
        f"{float(prepared.price.epsilon):.3g} takes about {needed.number:,} people, but there are "
        f"{people:,} at most. Nothing was spent. {pay}, or declare {_declared(prepared)}.",
        parameter="epsilon",
    )


def _declared(prepared: Prepared) -> str:
    """Say how to declare what would be inferred."""
    found = []
    for one in prepared.price.inferences:
        if one.is_limit:
            said = {"groups": "groups=", "total": "rows= (or total= with the column)"}
            found.append(said.get(one.of, "rows="))
        else:
            assert one.value is not None
            found.append(f"bounds, as in CLAMP({prepared.query.values[one.value].text}, low, high)")
    return " and ".join(dict.fromkeys(found))


def _name(inference: Inference, prepared: Prepared) -> str:
    if inference.of == "total" and inference.value is not None:
        return f"largest sum of {prepared.query.values[inference.value].text} per person"
    if inference.is_limit:
        return {"groups": "groups", "pairs": "values"}.get(inference.of, "rows") + " per person"
    assert inference.value is not None
    return f"bounds of {prepared.query.values[inference.value].text}"


def _number(price: Price, catalog: Catalog) -> int:
    assert price.inference_noise is not None
    reach = sensitivity(
        Norm(limit=1, order=1),
        order=price.order,
        neighbours=catalog.neighbours,
        group_size=catalog.unit.size,
    )
    bins = max(len(one.edges) + 1 for one in price.inferences)
    return math.ceil(enough_units(price.inference_noise, reach, bins=bins))


def _enough(prepared: Prepared, catalog: Catalog, people: int) -> float | None:
    """Return an epsilon for which so many people are enough."""

    def is_enough(epsilon: Fraction) -> bool:
        found = prices(
            prepared.query,
            prepared.layout,
            catalog,
            epsilon=epsilon,
            delta=prepared.price.delta,
            bounding=prepared.bounding,
        )
        return any(_number(one, catalog) <= people for one in found)

    low, high = prepared.price.epsilon, prepared.price.epsilon * 2
    while not is_enough(high):
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high / low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return float(f"{math.nextafter(float(high), math.inf) * 1.005:.2e}")
