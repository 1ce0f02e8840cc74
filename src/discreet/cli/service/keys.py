"""``discreet keys``: API keys, made and ended where the gateway runs."""

import getpass
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json, tell
from discreet.cli.service.options import ConfigOption, place_of
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.service import ApiKey, Records

__all__ = ["create", "end", "listed"]

_DAY = 86_400


def create(
    who: Annotated[str, typer.Argument(metavar="NAME", help="Whose key; the ledger gets it.")],
    role: Annotated[
        list[str], typer.Option(metavar="ROLE", help="analyst, custodian or auditor; several.")
    ],
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only for these; all if not said.")
    ] = None,
    days: Annotated[float | None, typer.Option(metavar="N", help="How long it is good.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an API key. Its text is shown once, and kept nowhere.

    Example: [bold]discreet keys create ana --role analyst --days 90[/bold]
    """
    from discreet.service import Role
    from discreet.service import create as make

    if days is not None and not 0 < days < float("inf"):  # phrased so that NaN fails too
        raise ParameterError("days must be more than 0.", parameter="days")
    roles = _roles(role, Role)
    expires = None if days is None else time.time() + _DAY * days
    with _opened(config) as (records, ledger):
        key, text = make(records, who=who, roles=roles, datasets=dataset, expires=expires)
        ledger.act("key.created", who=getpass.getuser(), subject=key.id)
    if as_json:
        echo_json({"id": key.id, "who": key.who, "key": text})
        return
    tell(f"The key of {who}, shown this once:")
    tell(f"  {text}", bold=True)
    tell(f"PostgreSQL clients give it with the user {key.id}.")
    tell(f"End it with: discreet keys revoke {key.id}")


def listed(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List all API keys, without their secrets."""
    from discreet.service import all_keys

    with _opened(config) as (records, _):
        found = [_facts(one) for one in all_keys(records)]
    if as_json:
        echo_json(found)
        return
    for one in found:
        limits = ", ".join(one["datasets"]) if one["datasets"] else "all datasets"
        tell(f"{one['id']}  {one['who']}  {', '.join(one['roles'])}  {limits}  {one['state']}")
    if not found:
        tell("There are no keys yet. Make one with: discreet keys create NAME --role analyst")


def end(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id: discreet keys list.")],
    config: ConfigOption = None,
) -> None:
    """End an API key for good, within a second everywhere."""
    from discreet.service import revoke

    with _opened(config) as (records, ledger):
        if not revoke(records, key):
            raise ParameterError("there is no key of this id that is not revoked.", parameter="id")
        ledger.act("key.revoked", who=getpass.getuser(), subject=key)
    tell(f"Key {key} opens nothing any more.")


@contextmanager
def _opened(config: Any) -> "Iterator[tuple[Records, Ledger]]":
    from discreet.ledger import Ledger
    from discreet.service import Records, read_settings

    settings = read_settings(place_of(config))
    with (
        Ledger.open(settings.ledger, key=settings.ledger_key, create=False) as ledger,
        Records.open(settings.records_location) as records,
    ):
        yield records, ledger


def _roles(given: list[str], known: Any) -> list[Any]:
    try:
        return [known(one) for one in given]
    except ValueError:
        told = ", ".join(known)
        raise ParameterError(f"role must be among {told}.", parameter="role") from None


def _facts(key: "ApiKey") -> dict[str, Any]:
    state = "revoked" if key.revoked is not None else "good"
    if key.revoked is None and not key.is_good(time.time()):
        state = "expired"
    return {
        "id": key.id,
        "who": key.who,
        "roles": sorted(key.roles),
        "datasets": None if key.datasets is None else sorted(key.datasets),
        "state": state,
    }
