"""What everybody may be told where the ledger or the records do not answer."""

import json
import logging
from typing import Final

from discreet.errors import LedgerUnavailable

__all__ = ["told_of_outage"]

_NOTHING: Final = "Nothing was spent."
_MAYBE: Final = "It may have been charged; asked again with the same key it is not charged twice."
_logger = logging.getLogger("discreet.service")


def told_of_outage(error: LedgerUnavailable) -> str:
    """Keep the reason, which names files and hosts, for the log; return the outcome.

    >>> print(told_of_outage(LedgerUnavailable("/srv/budget.db: the disk is full.")))
    the ledger or the gateway's records do not answer. Nothing was spent. A custodian finds the
    reason in the gateway's log.
    """
    _logger.error(json.dumps({"event": "unavailable", "why": str(error)}, sort_keys=True))
    return (
        "the ledger or the gateway's records do not answer. "
        f"{_MAYBE if error.may_be_recorded else _NOTHING} "
        "A custodian finds the reason in the gateway's log."
    )
