"""The sources of data that an account has, their versions, types, and sketches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet._json import read_json
from discreet.ledger.receipts import Receipt
from discreet.ledger.recognition.content import TableContent
from discreet.ledger.rules.entry_forms import REASON
from discreet.ledger.writing import request as requests

if TYPE_CHECKING:
    from discreet.ledger.accounts.custody import AccountCustody
    from discreet.ledger.rules.entry import Entry

__all__ = ["RegisteredSource", "register", "registered", "versions"]


def register(
    account: "AccountCustody",
    name: str,
    *,
    version: str,
    identities: Sequence[str],
    content: TableContent | None,
    types: Mapping[str, str] | None,
    override: str | None,
    who: str | None,
) -> Receipt:
    """See :meth:`Account.register`."""
    source, sketches = account._session.source(
        name, version=version, identities=identities, content=content, types=types
    )
    entry: Entry = {"kind": "source", "source": source}
    if override is not None:
        entry["override"] = requests.text(override, name="override", longest=REASON)
    if who is not None:
        entry["who"] = requests.text(who, name="who")
    return account._append(entry, sketches=sketches)


@final
@dataclass(frozen=True, slots=True)
class RegisteredSource:
    """What an account knows of a source.

    ``types`` are those that were given to columns without any, by fingerprints of the columns;
    ``is_sketched`` says whether copies of it are noticed.

    >>> RegisteredSource(version="1", types={}, is_sketched=True).version
    '1'
    """

    version: str
    types: Mapping[str, str]
    is_sketched: bool


def registered(account: "AccountCustody") -> dict[str, RegisteredSource]:
    """See :meth:`Account.registered`."""
    with account._session.read() as snapshot:
        known, types, sketches = (
            {fact.removeprefix(prefix): text for fact, text in snapshot.facts_under(prefix)}
            for prefix in (f"{kind}/{account.name}/" for kind in ("registered", "types", "sketch"))
        )
    return {
        name: RegisteredSource(
            version=str(read_json(text)["version"]),
            types=read_json(types.get(name, "{}")),
            is_sketched=name in sketches,
        )
        for name, text in known.items()
    }


def versions(account: "AccountCustody") -> dict[str, str]:
    """See :meth:`Account.sources`."""
    return {name: source.version for name, source in registered(account).items()}
