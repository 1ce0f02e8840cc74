"""Every exception discreet raises on purpose, and nothing else.

All derive from :class:`DiscreetError`, so ``except DiscreetError`` catches whatever this library
refuses. Messages depend on parameters and shapes only, never on a private value.
"""

__all__ = [
    "BudgetExceeded",
    "DataError",
    "DiscreetError",
    "MissingExtra",
    "NotCopyable",
    "ParameterError",
    "PrivacyWarning",
    "SensitiveValue",
    "SessionOver",
]


class DiscreetError(Exception):
    """The root of every error discreet raises on purpose.

    >>> issubclass(ParameterError, DiscreetError)
    True
    """


class ParameterError(DiscreetError, ValueError):
    """A parameter is out of range; no randomness was drawn and nothing was spent.

    ``parameter`` names the culprit, so programs need not parse the prose.

    >>> ParameterError("epsilon must be positive, got -1.", parameter="epsilon").parameter
    'epsilon'
    """

    def __init__(self, message: str, *, parameter: str) -> None:
        self.parameter = parameter
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_parameter_error, (str(self), self.parameter))


def _parameter_error(message: str, parameter: str) -> ParameterError:
    return ParameterError(message, parameter=parameter)


class BudgetExceeded(DiscreetError):
    """A loss costs more than a budget has left. Nothing was spent.

    ``used`` is the share of the budget already used, ``would_be`` the share that the loss would
    have brought it to: above 1, infinite where the loss has no finite cost in this kind of budget.

    >>> print(BudgetExceeded(used=0.75, would_be=1.25))
    this loss would bring the filter from 0.75 to 1.25 of its limit. Nothing was spent. Ask for
    less: more noise, a smaller sampling rate or fewer steps.
    """

    def __init__(self, *, used: float, would_be: float, budget: str = "the filter") -> None:
        self.used, self.would_be, self.budget = used, would_be, budget
        if would_be < float("inf"):
            told = f"would bring {budget} from {used:.4g} to {would_be:.4g} of its limit"
            way_out = "Ask for less: more noise, a smaller sampling rate or fewer steps."
        else:
            told = f"has no finite cost in {budget}"
            way_out = (
                "It is not pure, and this budget has no delta, or too little, for how it may fail."
            )
        super().__init__(f"this loss {told}. Nothing was spent. {way_out}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_budget_exceeded, (self.used, self.would_be, self.budget))


def _budget_exceeded(used: float, would_be: float, budget: str) -> BudgetExceeded:
    return BudgetExceeded(used=used, would_be=would_be, budget=budget)


class DataError(DiscreetError, ValueError):
    """The data has a type, shape or non-finite entry that no mechanism can take.

    The message never shows a value. Nothing was released.

    >>> issubclass(DataError, ValueError)
    True
    """


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it.

    >>> print(MissingExtra(room="discreet.learn", needs="torch", extra="learn"))
    discreet.learn needs torch. Install it with: pip install 'discreet[learn]'
    """

    def __init__(self, *, room: str, needs: str, extra: str) -> None:
        self.room, self.needs, self.extra = room, needs, extra
        super().__init__(f"{room} needs {needs}. Install it with: pip install 'discreet[{extra}]'")


class SessionOver(DiscreetError, RuntimeError):
    """An interactive session has given all the answers it was paid for.

    >>> issubclass(SessionOver, RuntimeError)
    True
    """


class SensitiveValue(DiscreetError, TypeError):
    """An un-noised value was about to be shown, compared, copied or pickled.

    >>> issubclass(SensitiveValue, TypeError)
    True
    """


class NotCopyable(DiscreetError, TypeError):
    """A live session was about to be copied or pickled, which would repeat its noise.

    >>> issubclass(NotCopyable, TypeError)
    True
    """


class PrivacyWarning(UserWarning):
    """The guarantee holds as stated, but is weaker than people usually want.

    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """
