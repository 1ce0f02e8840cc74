"""``discreet collect show``: what is asked, what was paid, and how many reports there are."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.collect.opening import NameArgument, found
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json, tell

if TYPE_CHECKING:
    from discreet.local import CollectionFacts

__all__ = ["show"]


def show(
    name: NameArgument,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="Print what devices are told, and nothing else.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a collection's terms, its counts and what was paid. It needs no ledger.

    Example: [bold]discreet collect show emoji[/bold]
    """
    from discreet.local import CollectionFacts

    facts = CollectionFacts.read(found(name))
    if parameters:
        typer.echo(facts.terms.parameters.canonical.decode())
    elif as_json:
        echo_json(_for_json(facts))
    else:
        for title, line in _lines(facts):
            tell(f"{title:10} {line}")


def _for_json(facts: "CollectionFacts") -> dict[str, Any]:
    terms = facts.terms
    return {
        "parameters": terms.parameters.document,
        "ledger": terms.ledger,
        "account": terms.account,
        "minimum": terms.minimum,
        "who": terms.who,
        "purpose": terms.purpose,
        "opened": terms.opened.isoformat(),
        "participation_is_public": terms.participation_is_public,
        "counts": facts.counts,
        "paid": facts.paid,
        "publication": facts.publication
        and dict(zip(("number", "n"), facts.publication, strict=True)),
    }


def _lines(facts: "CollectionFacts") -> list[tuple[str, str]]:
    terms, told = facts.terms, facts.terms.parameters
    law = told.document["randomiser"]
    rejects = {what: n for what, n in facts.counts.items() if what != "accepted"}
    periods = [period or "a device's lifetime" for period in facts.paid]
    span = periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}" if periods else ""
    entries = ", ".join(map(str, list(facts.paid.values())[-3:]))
    return [
        ("collection", f"{told.name}, {told.collection}, opened {terms.opened}"),
        ("randomiser", ", ".join(f"{what} {value}" for what, value in law.items())),
        ("devices", f"spend at most {told.a_day} a day, {told.lifetime} ever"),
        ("account", f"{terms.account}, of ledger {terms.ledger}"),
        ("paid", f"for {span}: entry {entries}" if periods else "nothing yet"),
        ("purpose", f"{terms.purpose}, for {terms.who}"),
        ("reports", f"{facts.counts['accepted']} accepted"),
        ("rejects", ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in rejects.items())),
        ("published", _published(facts)),
    ]


def _published(facts: "CollectionFacts") -> str:
    if facts.publication is None:
        return f"nothing yet: from {facts.terms.minimum} reports on"
    number, n = facts.publication
    return f"{n} reports, as number {number}; the next {facts.terms.minimum} reports later"
