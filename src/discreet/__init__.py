"""One privacy budget for everything you do with people's data.

The names below load on first use (PEP 562), so ``import discreet`` costs next to nothing.

>>> import discreet
>>> discreet.Guarantee(epsilon=1, delta=1e-6)
Guarantee(epsilon=1, delta=1e-06)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet._version import __version__

if TYPE_CHECKING:
    from discreet.accounting import delta, epsilon
    from discreet.client import RemoteTables, connect
    from discreet.ledger import Ledger
    from discreet.privacy import Guarantee, Neighbours, Sensitive, Unit
    from discreet.tables import Protected, Result, open_tables, protect

_HOME = {
    "Guarantee": "discreet.privacy",
    "Ledger": "discreet.ledger",
    "Neighbours": "discreet.privacy",
    "Protected": "discreet.tables",
    "RemoteTables": "discreet.client",
    "Result": "discreet.tables",
    "Sensitive": "discreet.privacy",
    "Unit": "discreet.privacy",
    "connect": "discreet.client",
    "delta": "discreet.accounting",
    "epsilon": "discreet.accounting",
    "open_tables": "discreet.tables",
    "protect": "discreet.tables",
}
_ROOMS = (
    "accounting",
    "attacks",
    "audit",
    "client",
    "datasets",
    "errors",
    "learn",
    "ledger",
    "local",
    "mechanisms",
    "noise",
    "plotting",
    "privacy",
    "service",
    "shuffle",
    "tables",
    "testing",
)

__all__ = [
    "Guarantee",
    "Ledger",
    "Neighbours",
    "Protected",
    "RemoteTables",
    "Result",
    "Sensitive",
    "Unit",
    "__version__",
    "connect",
    "delta",
    "epsilon",
    "open_tables",
    "protect",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _ROOMS:
        return import_module(f"discreet.{name}")
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
