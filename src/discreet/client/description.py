"""What a gateway says about a login and its datasets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from discreet.client.transport import GatewayCall, Wire
from discreet.errors import DiscreetError

__all__ = ["Description", "named", "read_description"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is public about a dataset: its tables, those of them that are protected, the budget.

    >>> Description(tables={"people": {}}, protected=("people",), remaining=1.0).protected
    ('people',)
    """

    tables: Mapping[str, Mapping[str, str]]
    protected: tuple[str, ...]
    remaining: float
    document: dict[str, Any] = field(default_factory=dict, repr=False)


def read_description(document: dict[str, Any]) -> Description:
    """Rebuild a description from what a gateway says.

    >>> read_description({})
    Traceback (most recent call last):
        ...
    discreet.errors.DiscreetError: the gateway sent something that describes no dataset.
    """
    try:
        tables = {
            str(table["name"]): {str(one["name"]): str(one["type"]) for one in table["columns"]}
            for table in document["tables"]
        }
        protected = [str(one["name"]) for one in document["tables"] if one["is_public"] is not True]
        return Description(
            tables=tables,
            protected=(protected[0], *protected[1:]),
            remaining=float(document["remaining"]),
            document=document,
        )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise DiscreetError("the gateway sent something that describes no dataset.") from None


def named(wire: Wire) -> list[str]:
    """Return the names of the datasets that a login may ask.

    >>> from discreet.client.example import ExampleGateway
    >>> with ExampleGateway() as gateway:
    ...     named(gateway)
    ['people']
    """
    found = wire.call(GatewayCall("GET", "/v1/datasets")).get("datasets")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise DiscreetError("the gateway sent something that is no list of datasets.")
    return found
