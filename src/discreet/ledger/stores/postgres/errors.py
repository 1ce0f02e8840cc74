"""What a server reports, as errors that say what happened, what was written and what to do."""

from typing import Final

from discreet.errors import LedgerError, LedgerUnavailable

__all__ = [
    "ADVICE",
    "LOCK_NOT_AVAILABLE",
    "NO_PRIVILEGE",
    "READ_ONLY",
    "ConnectionLost",
    "ServerError",
    "explained",
    "unavailable",
]

LOCK_NOT_AVAILABLE, NO_PRIVILEGE, READ_ONLY = "55P03", "42501", "25006"

ADVICE: Final = {
    "53100": "the server's disk is full. Free some space there and try again.",
    READ_ONLY: "the server lets this user only read. Connect to the primary server, as a user "
    "without default_transaction_read_only, or open the ledger read_only.",
    NO_PRIVILEGE: "this user has no permission for it. Ask its owner to GRANT it.",
    "42P01": "tables are missing. Restore them from a backup.",
    "3F000": "the schema is gone. Restore it from a backup.",
    "53200": "the server has no memory left. Try again later.",
}


class ConnectionLost(Exception):
    """The server did not answer. ``sent`` is false where it cannot have got the question."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        self.reason, self.sent = reason, sent
        super().__init__(reason)


class ServerError(Exception):
    """The server answered with an error; its DETAIL, which may show values, is left out."""

    def __init__(self, code: str, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(f"{reason} ({code})")


def explained(error: ServerError, where: object) -> LedgerError:
    """Return the error for a user to what the server error."""
    if error.code in ADVICE:
        return unavailable(ADVICE[error.code], where)
    if error.code.startswith("23"):
        return LedgerError(
            f"the ledger in {where} error an entry that would contradict another one "
            f"({error}). Nothing was written."
        )
    return unavailable(f"the server error: {error}.", where)


def unavailable(problem: str, where: object, *, may_be_recorded: bool = False) -> LedgerUnavailable:
    """Return the error for a user: what happened, whether anything was written, what to do."""
    outcome = (
        "Whether the last step was recorded is not known; ask again with the same key."
        if may_be_recorded
        else "Nothing was written."
    )
    return LedgerUnavailable(
        f"the ledger in {where}: {problem} {outcome}", may_be_recorded=may_be_recorded
    )
