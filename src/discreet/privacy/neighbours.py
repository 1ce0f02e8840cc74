"""Which two datasets count as neighbours, and when a guarantee carries over.

Three relations are in use and they are not interchangeable: under ``replace_one`` the number of
units is public, under ``add_remove`` it is a secret. :func:`convert` knows every step that is
sound and refuses the rest.
"""

from enum import StrEnum
from typing import Final, Self

from discreet._exact import exact, refusal
from discreet.errors import ParameterError
from discreet.privacy.guarantee import Guarantee, delta_times_exp, times_up


class Neighbours(StrEnum):
    """Name the change of one unit that a guarantee hides.

    ``add_remove``: the unit's records are in the data or they are not; the size is secret.
    ``replace_one``: the unit's records are exchanged for any others; the size is public.
    ``zero_out``: the unit's records are exchanged for a fixed null record, such as a zero
    gradient [KMSTTX21]; the size is public.

    >>> Neighbours("replace_one") is Neighbours.replace_one
    True
    >>> f"{Neighbours.add_remove}"
    'add_remove'
    """

    add_remove = "add_remove"
    replace_one = "replace_one"
    zero_out = "zero_out"

    @classmethod
    def of(cls, name: str, *, parameter: str = "neighbours") -> Self:
        """Return the relation of this name, or refuse the parameter that it was given for.

        >>> Neighbours.of("zero_out")
        <Neighbours.zero_out: 'zero_out'>
        >>> Neighbours.of("remove")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: neighbours must be one of add_remove, replace_one, \
zero_out, got 'remove'.
        """
        try:
            return cls(name)
        except ValueError:
            raise refusal(parameter, f"one of {', '.join(cls)}", name) from None


_SAME: Final = 1
_TWO_STEPS: Final = 2

# (source, target) -> (null must be admissible, null must be ignored, steps), cheapest first. The
# proofs are in the docstring of `convert`, in the same order.
_RULES: Final[dict[tuple[Neighbours, Neighbours], tuple[tuple[bool, bool, int], ...]]] = {
    (Neighbours.add_remove, Neighbours.replace_one): ((False, False, _TWO_STEPS),),
    (Neighbours.zero_out, Neighbours.replace_one): ((False, False, _TWO_STEPS),),
    (Neighbours.replace_one, Neighbours.zero_out): ((True, False, _SAME),),
    (Neighbours.add_remove, Neighbours.zero_out): (
        (False, True, _SAME),
        (True, False, _TWO_STEPS),
    ),
    (Neighbours.zero_out, Neighbours.add_remove): ((False, True, _SAME),),
    (Neighbours.replace_one, Neighbours.add_remove): ((True, True, _SAME),),
}


def convert(
    guarantee: Guarantee,
    *,
    source: Neighbours | str,
    target: Neighbours | str,
    null_is_admissible: bool = False,
    null_is_ignored: bool = False,
) -> Guarantee:
    """Carry a guarantee from one neighbouring relation to another, where that is sound.

    Two facts about the null record 0 of ``zero_out`` decide most cases, and only the caller knows
    them. *Admissible*: the source guarantee covers datasets that contain 0 like any other record.
    *Ignored*: M(D + {0}) and M(D) have the same distribution, as for sums where 0 adds nothing
    and nothing is divided by the number of rows.

    Claim: with (epsilon, delta) under ``source``, M has under ``target``:

    1. add_remove to replace_one: (2 epsilon, (1 + e^epsilon) delta).
    2. zero_out to replace_one: the same.
    3. replace_one to zero_out: (epsilon, delta), if 0 is admissible.
    4. add_remove to zero_out: (epsilon, delta) if 0 is ignored; as in 1 if it is admissible.
    5. zero_out to add_remove: (epsilon, delta), if 0 is ignored.
    6. replace_one to add_remove: (epsilon, delta), if 0 is admissible and ignored.

    Why: write P, Q, R for M on the first, a middle and the last dataset. If P <= e^epsilon Q +
    delta and Q <= e^epsilon R + delta on every event, then P <= e^(2 epsilon) R +
    (1 + e^epsilon) delta: two steps cost what 1 says.

    1. Remove x, then add y; the middle dataset is one smaller, and add_remove covers all sizes.
    2. Zero x out, then run a zeroing of y backwards; the middle dataset contains 0, and the
       zero_out guarantee speaks of exactly such datasets.
    3. Writing 0 over x is one of the replacements that the guarantee covers.
    4. Ignored: M on D with 0 for x is M on D without x, one removal away. Admissible: remove x,
       then add 0.
    5. M(D) is M(D + {0}), and that is D + {x} with x zeroed out.
    6. M(D) is M(D + {0}), and that is D + {x} with x replaced by 0.

    Nothing else follows. The mechanism that publishes the number of rows is (0, 0) under
    replace_one, and under zero_out with a null that counts, yet keeps no promise under add_remove;
    one that publishes whether a record equals an inadmissible null breaks 3.

    >>> g = Guarantee(epsilon=1, delta=1e-6)
    >>> convert(g, source="add_remove", target="replace_one")
    Guarantee(epsilon=2, delta=3.7182818284590455e-06)
    >>> convert(g, source="replace_one", target="zero_out", null_is_admissible=True) == g
    True
    >>> convert(g, source="replace_one", target="add_remove")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: replace_one does not give add_remove: ...
    """
    start = Neighbours.of(source, parameter="source")
    end = Neighbours.of(target, parameter="target")
    if start is end:
        return guarantee
    for needs_admissible, needs_ignored, steps in _RULES[start, end]:
        if (null_is_admissible or not needs_admissible) and (null_is_ignored or not needs_ignored):
            return guarantee if steps == _SAME else _two_steps(guarantee)
    raise ParameterError(_refusal(start, end), parameter="target")


def _two_steps(guarantee: Guarantee) -> Guarantee:
    epsilon = exact(guarantee.epsilon, name="epsilon")
    return Guarantee(
        epsilon=times_up(guarantee.epsilon, 2),
        delta=delta_times_exp(guarantee.delta, factor=1, exponent=epsilon, plus=1),
    )


def _refusal(source: Neighbours, target: Neighbours) -> str:
    """Say why a step is refused and which facts, or which other road, would make it sound."""
    reasons = {
        Neighbours.add_remove: "the number of units may be public under {source} but not under "
        "{target}.",
        Neighbours.zero_out: "nothing says how the mechanism treats the null record.",
    }
    ways = []
    for needs_admissible, needs_ignored, _ in _RULES[source, target]:
        facts = []
        if needs_admissible:
            facts.append("null_is_admissible=True (the guarantee covers data with null records)")
        if needs_ignored:
            facts.append("null_is_ignored=True (a null record never changes the output)")
        ways.append(" and ".join(facts))
    reason = reasons[target].format(source=source, target=target)
    return (
        f"{source} does not give {target}: {reason} If it is true, state {', or '.join(ways)}; "
        f"otherwise compute the sensitivity for {target} and calibrate the mechanism anew."
    )
