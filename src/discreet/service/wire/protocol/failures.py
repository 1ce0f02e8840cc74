"""What goes wrong, as PostgreSQL says it: a code, a message, and what to do."""

from traceback import extract_tb
from typing import Final, final

from discreet.errors import (
    AlreadyCharged,
    BudgetExceeded,
    DiscreetError,
    LedgerUnavailable,
    Missed,
    NotAllowed,
    ParameterError,
    Refused,
    TryLater,
    Unauthenticated,
)
from discreet.service.desk.unavailable import told_of_outage

__all__ = ["WireFailure", "failure_of", "place_of", "protocol_violation", "shutting_down"]

_INTERNAL: Final = "the gateway made a mistake; its own log says more"
_SYNTAX: Final = ("syntax", "empty", "statements", "statement")
_MESSAGES: Final = (  # the first that fits; what may have been spent is in the message itself
    (ParameterError, "22023"),
    (BudgetExceeded, "53400"),
    (TryLater, "53300"),
    (Missed, "57014"),
    (Unauthenticated, "28P01"),
    (NotAllowed, "42501"),
    (AlreadyCharged, "40001"),
    (DiscreetError, "0A000"),
)


@final
class WireFailure(Exception):
    """An error on its way to a client: ``code`` is PostgreSQL's, ``position`` counts from 1.

    ``is_fatal`` ends the connection.

    >>> WireFailure("42601", "this is no question", hint="Ask one SELECT.").fields()["H"]
    'Ask one SELECT.'
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        position: int = 0,
        is_fatal: bool = False,
    ) -> None:
        self.code, self.message, self.detail, self.hint = code, message, detail, hint
        self.position, self.is_fatal = position, is_fatal
        super().__init__(message)

    def fields(self) -> dict[str, str]:
        """Return the fields of an ErrorResponse."""
        severity = "FATAL" if self.is_fatal else "ERROR"
        fields = {"S": severity, "V": severity, "C": self.code, "M": self.message}
        place = str(self.position) if self.position else ""
        others = {"D": self.detail, "H": self.hint, "P": place}
        return fields | {name: text for name, text in others.items() if text}


def failure_of(error: BaseException, question: str = "") -> WireFailure:
    r"""Return what a client is told of an error: nothing, where nobody meant it to be read.

    >>> failure_of(ValueError("a secret")).message
    'the gateway made a mistake; its own log says more'
    >>> told = failure_of(Refused(code="star", line=2, column=3, reason="No rows.", remedy="Ask."),
    ...                   "SELECT\n  *")
    >>> told.code, told.message, told.hint, told.position
    ('0A000', 'No rows. Nothing was spent.', 'Ask.', 10)
    """
    if isinstance(error, WireFailure):
        return error
    if isinstance(error, Refused):
        return WireFailure(
            "42601" if error.code in _SYNTAX else "0A000",
            f"{error.reason} Nothing was spent.",
            hint=error.remedy,
            position=_position(question, error.line, error.column),
        )
    if isinstance(error, BudgetExceeded):
        cut, nothing, remedy = str(error).partition("Nothing was spent.")
        return WireFailure("53400", cut + nothing, hint=remedy.strip())
    if isinstance(error, LedgerUnavailable):
        return WireFailure("58030", told_of_outage(error))
    for kind, code in _MESSAGES:
        if isinstance(error, kind):
            return WireFailure(code, str(error))
    if isinstance(error, RecursionError):
        return WireFailure("54001", "the statement is too deeply nested")
    return WireFailure("XX000", _INTERNAL)


def place_of(error: BaseException) -> str:
    """Return where an error came from, for a log: its words might be about data, and stay out.

    >>> try:
    ...     int("secret")
    ... except ValueError as error:
    ...     place_of(error).rpartition("/")[2]
    'ValueError at <doctest ...>:2'
    """
    frames = extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    return f"{type(error).__name__} at {place}"


def protocol_violation(what: str) -> WireFailure:
    """Return the end of a connection whose client does not speak the protocol.

    >>> protocol_violation("no such message").code
    '08P01'
    """
    return WireFailure("08P01", what, is_fatal=True)


def shutting_down() -> WireFailure:
    """Return the end of a connection that the gateway does not outlive.

    >>> shutting_down().code
    '57P01'
    """
    return WireFailure("57P01", "the gateway is shutting down", is_fatal=True)


def _position(question: str, line: int, column: int) -> int:
    """Return the place of a line and column among the characters, from 1; 0 where there is none."""
    lines = question.split("\n")
    if not 1 <= line <= len(lines):
        return 0
    return sum(len(one) + 1 for one in lines[: line - 1]) + column
