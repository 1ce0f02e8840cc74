"""Which periods of the data a request touches, as a caller names them."""

from collections.abc import Sequence
from datetime import date

from discreet.errors import ParameterError
from discreet.ledger.rules.definition import Definition
from discreet.ledger.rules.entry import period_label
from discreet.ledger.rules.spending import check_periods

__all__ = ["Periods", "labels"]

Periods = str | date | Sequence[str | date] | None


def labels(definition: Definition, periods: Periods) -> list[str]:
    """Return the labels of the periods, each once; none where the unit has no period."""
    check_periods(definition, bool(periods))
    if not periods or definition.unit.period is None:
        return []
    if not isinstance(periods, str | date | Sequence):
        raise ParameterError("periods are labels or dates.", parameter="periods")
    several = [periods] if isinstance(periods, str | date) else list(periods)
    return sorted({period_label(one, definition.unit.period) for one in several})
