"""Every exception discreet raises on purpose, and nothing else.

All derive from :class:`DiscreetError`, so ``except DiscreetError`` catches whatever this library
refuses. Messages depend on parameters and shapes only, never on a private value.
"""

__all__ = [
    "AccountNotFound",
    "AlreadyCharged",
    "BudgetExceeded",
    "DataError",
    "DiscreetError",
    "LedgerError",
    "LedgerUnavailable",
    "MissingExtra",
    "Missed",
    "NotAllowed",
    "NotCopyable",
    "ParameterError",
    "PrivacyWarning",
    "Refused",
    "SensitiveValue",
    "SessionOver",
    "TamperingFound",
    "TryLater",
    "Unauthenticated",
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
    """A loss does not fit into what a budget has left. Nothing was spent.

    ``used`` is the share of the budget already used, ``would_be`` the share that the loss would
    have brought it to: above 1, infinite where the loss has no finite cost in this kind of budget.
    ``budget`` says whose budget it is, and ``account`` belongs to which account, where there is
    one. ``still`` says what would fit, where that is known, and ``way_out`` what else to do.
    ``offer`` is the same release with more noise, where the account's policy is to offer it.

    >>> print(BudgetExceeded(used=0.75, would_be=1.25))
    this loss would bring the filter from 75% to 125% used. Nothing was spent. Ask for less: more
    noise, a smaller sampling rate or fewer steps.
    """

    offer: object = None

    def __init__(
        self,
        *,
        used: float,
        would_be: float,
        budget: str = "the filter",
        account: str | None = None,
        still: str = "",
        way_out: str = "",
    ) -> None:
        self.used, self.would_be, self.budget = used, would_be, budget
        self.account, self.still, self.way_out = account, still, way_out
        if would_be < float("inf"):
            # Above 100% also where it is by the last digit only.
            told = f"would bring {budget} from {100 * used:.4g}% to "
            told += f"{max(100 * would_be, 100.1):.4g}% used"
            remedy = still or "Ask for less: more noise, a smaller sampling rate or fewer steps."
        else:
            told = f"has no finite cost in {budget}"
            remedy = (
                "It is not pure, and this budget has no delta, or too little, for how it may fail."
            )
        super().__init__(f"this loss {told}. Nothing was spent. {remedy} {way_out}".rstrip())

    def __reduce__(self) -> tuple[object, ...]:
        facts = (self.used, self.would_be, self.budget, self.account, self.still, self.way_out)
        return (_budget_exceeded, facts)


def _budget_exceeded(
    used: float, would_be: float, budget: str, account: str | None, still: str, way_out: str
) -> BudgetExceeded:
    return BudgetExceeded(
        used=used, would_be=would_be, budget=budget, account=account, still=still, way_out=way_out
    )


class LedgerError(DiscreetError):
    """Something about a ledger is not as it must be; the kinds below say what.

    >>> issubclass(TamperingFound, LedgerError)
    True
    """


class LedgerUnavailable(LedgerError, OSError):
    """The ledger's storage did not answer: a full disk, a read-only file, a lost connection.

    ``may_be_recorded`` is false where nothing was written. Where it is true the connection broke
    while the answer was on its way; asking again with the same key never charges twice.

    >>> LedgerUnavailable("the disk is full. Nothing was written.").may_be_recorded
    False
    """

    def __init__(self, message: str, *, may_be_recorded: bool = False) -> None:
        self.may_be_recorded = may_be_recorded
        super().__init__(message)


class TamperingFound(LedgerError):
    """A ledger is not what was once written; ``entry`` is the first bad entry, where one is.

    >>> TamperingFound("entry 7 was altered.", entry=7).entry
    7
    """

    def __init__(self, message: str, *, entry: int | None = None) -> None:
        self.entry = entry
        super().__init__(message)


class AccountNotFound(LedgerError, LookupError):
    """The ledger has no account of this name.

    >>> issubclass(AccountNotFound, LookupError)
    True
    """


class DataError(DiscreetError, ValueError):
    """The data has a type, shape or non-finite entry that no mechanism can take.

    The message never shows a value. Nothing was released.

    >>> issubclass(DataError, ValueError)
    True
    """


class Refused(DiscreetError, ValueError):
    """A question cannot be answered privately, or not in this form. Nothing was spent.

    ``code`` names the rule, ``line`` and ``column`` (from 1) the place in the question, ``reason``
    says why and ``remedy`` what to ask instead. None of them depends on the data.

    >>> print(Refused(code="star", line=1, column=8, reason="SELECT * would show raw rows.",
    ...               remedy="Ask for aggregates such as COUNT(*)."))
    line 1, column 8: SELECT * would show raw rows. Nothing was spent. Ask for aggregates such as
    COUNT(*).
    """

    def __init__(self, *, code: str, line: int, column: int, reason: str, remedy: str) -> None:
        self.code, self.line, self.column = code, line, column
        self.reason, self.remedy = reason, remedy
        super().__init__(
            f"line {line}, column {column}: {reason} Nothing was spent. {remedy}".rstrip()
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_refused, (self.code, self.line, self.column, self.reason, self.remedy))


def _refused(code: str, line: int, column: int, reason: str, remedy: str) -> Refused:
    return Refused(code=code, line=line, column=column, reason=reason, remedy=remedy)


class AlreadyCharged(DiscreetError):
    """A request was charged before under the same key, and its answer cannot be given again.

    It is under way still, was lost after the charge, or is part of a plan, whose releases commit to
    what questions have in common. ``entry`` is the charge. Nothing was spent again.

    >>> print(AlreadyCharged(entry=7))
    this request was charged before, as entry 7, and its answer cannot be given again: it is under
    way, was lost after the charge, or is part of a plan. Nothing was spent again. To pay anew, ask
    with another key.
    """

    def __init__(self, *, entry: int) -> None:
        self.entry = entry
        super().__init__(
            f"this request was charged before, as entry {entry}, and its answer cannot be given "
            "again: it is under way, was lost after the charge, or is part of a plan. Nothing was "
            "spent again. To pay anew, ask with another key."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_already_charged, (self.entry,))


def _already_charged(entry: int) -> AlreadyCharged:
    return AlreadyCharged(entry=entry)


class Unauthenticated(DiscreetError):
    """A request came without a login that the gateway knows.

    The message is the same whatever is wrong with the login, so that nobody learns from it.

    >>> print(Unauthenticated())
    this needs a login that the gateway knows: an API key, or a token of an issuer that it trusts,
    that has not expired.
    """

    def __init__(self) -> None:
        super().__init__(
            "this needs a login that the gateway knows: an API key, or a token of an issuer that "
            "it trusts, that has not expired."
        )


class NotAllowed(DiscreetError):
    """A login has not the role, or not the dataset, that a request needs. Nothing was spent.

    >>> issubclass(NotAllowed, DiscreetError)
    True
    """


class TryLater(DiscreetError):
    """The gateway takes no more at the moment: too many requests, or a dataset at rest.

    Nothing was spent. ``seconds`` says when to come back, where that is known.

    >>> TryLater("this login asks too often. Nothing was spent.", seconds=2.0).seconds
    2.0
    """

    def __init__(self, message: str, *, seconds: float | None = None) -> None:
        self.seconds = seconds
        super().__init__(message)


class Missed(DiscreetError):
    """An answer was not ready at its public deadline, so it is not given. The charge stands.

    >>> issubclass(Missed, DiscreetError)
    True
    """


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it.

    >>> print(MissingExtra(room="discreet.learn", needs="torch", extra="learn"))
    discreet.learn needs torch. Install it with: pip install 'discreet[learn]'

    ``extra`` is None where the dependency is the user's own choice.
    """

    def __init__(self, *, room: str, needs: str, extra: str | None) -> None:
        self.room, self.needs, self.extra = room, needs, extra
        what = needs if extra is None else f"'discreet[{extra}]'"
        super().__init__(f"{room} needs {needs}. Install it with: pip install {what}")


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
