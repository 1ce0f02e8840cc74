"""Read back what a database kept of a filter, and refuse whatever is not that."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from discreet._exact import show
from discreet.accounting.filters.fixed_point import FixedPoint
from discreet.errors import ParameterError

__all__ = ["FORM", "counts", "field", "number", "units", "unreadable"]

FORM = 1

# Logarithms may differ in their last digits between machines and so may limits.
_WIDEST = 5000  # binary digits: beyond any float, and quick to compute with
_MARGIN = 1 + Fraction(1, 10**9)


def unreadable(why: str) -> ParameterError:
    """Build the refusal."""
    return ParameterError(f"this is not what a filter recorded: {why}.", parameter="state")


def field(settings: Mapping[str, object], name: str) -> object:
    """Return one setting."""
    if settings.get("form") != FORM:
        raise unreadable(f"its form is {show(settings.get('form'))}, and only {FORM} is known")
    if name not in settings:
        raise unreadable(f"{name} is missing")
    return settings[name]


def number(settings: Mapping[str, object], name: str) -> Fraction | None:
    """Return one setting that is a fraction written out, or nothing."""
    text = field(settings, name)
    if text is None:
        return None
    try:
        return Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise unreadable(f"{name} is not a fraction") from None


def units(settings: Mapping[str, object], ours: tuple[FixedPoint, ...]) -> tuple[FixedPoint, ...]:
    """Return the recorded units and limits; none may exceed what the guarantee allows."""
    pairs = field(settings, "limits")
    if not isinstance(pairs, Sequence) or len(pairs) != len(ours):
        raise unreadable("the limits are not those of its kind")
    found = []
    for pair, own in zip(pairs, ours, strict=True):
        if (
            not isinstance(pair, Sequence)
            or not all(type(n) is int for n in pair)
            or len(pair) != 2
        ):
            raise unreadable("a limit is not two whole numbers")
        read = FixedPoint(pair[0], pair[1])
        # Units may differ, since a guarantee that was widened keeps its own; whatever they are,
        # prices are rounded up to them.
        absurd = abs(read.exponent) > _WIDEST
        if absurd or not 0 <= read.amount <= own.amount * _MARGIN:
            raise unreadable("a limit is above what the guarantee allows")
        found.append(read)
    return tuple(found)


def counts(state: Sequence[int], length: int, *, last: int) -> tuple[tuple[int, ...], int]:
    """Return the sums, and the number behind them that must be below ``last``."""
    whole = all(type(n) is int and n >= 0 for n in state)
    if not whole or len(state) != length or state[-1] >= last:
        raise unreadable(f"its state is not {length} whole numbers of at least 0")
    return tuple(state[:-1]), state[-1]
