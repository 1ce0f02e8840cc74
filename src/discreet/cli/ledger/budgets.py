"""Commands that set budgets: open an account, limit it, widen it, say what happens at its end."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast
from urllib.parse import unquote

import typer

from discreet.cli.ledger.opening import writing
from discreet.cli.ledger.views import guarantee_words
from discreet.cli.numbers import parse
from discreet.cli.options import BUDGET, EpsilonOption, KeyOption, LedgerOption
from discreet.cli.output import tell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.accounting.filters import FilterKind
    from discreet.privacy import Guarantee, Unit


class Policy(StrEnum):
    """What happens at exhaustion."""

    deny = "deny"
    degrade = "degrade"
    wait = "wait"


class Kind(StrEnum):
    """How a filter counts."""

    basic = "basic"
    zcdp = "zcdp"
    renyi = "renyi"
    combined = "combined"


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The account.")]
OnRecordOption = Annotated[
    str | None, typer.Option("--who", metavar="NAME", help="Who does it, to be put on record.")
]
DeltaOption = Annotated[str, typer.Option(metavar="D", help="The chance of an exception: 1e-6.")]


def create(
    name: NameArgument,
    unit: Annotated[
        str, typer.Option(metavar="U", help="Who is protected: record, column:C or household:C.")
    ],
    epsilon: EpsilonOption,
    delta: DeltaOption = "0",
    per: Annotated[
        str | None, typer.Option(help="Protect each day, week, month or year by itself.")
    ] = None,
    neighbours: Annotated[str, typer.Option(help="add_remove, replace_one, zero_out.")] = (
        "add_remove"
    ),
    policy: Annotated[Policy, typer.Option(help="What happens at exhaustion.")] = Policy.deny,
    kind: Annotated[Kind | None, typer.Option(help="How the filter counts.")] = None,
    who: OnRecordOption = None,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Open an account: the one budget of a population.

    Example: [bold]discreet ledger create visits --unit column:user_id --per day --epsilon 1[/bold]
    """
    protected = unit_of(unit, per)
    guarantee = guarantee_of(epsilon, delta)
    with writing(ledger, key) as book:
        account = book.create(
            name,
            unit=protected,
            neighbours=neighbours,
            guarantee=guarantee,
            policy=policy.value,
            kind=cast("FilterKind | None", kind and kind.value),
            who=who,
        )
        tell(f"Opened {account.name}: {guarantee_words(guarantee)}, for {protected}.")


def limit(
    name: NameArgument,
    epsilon: EpsilonOption,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="That of the account if not said.")
    ] = None,
    analyst: Annotated[str | None, typer.Option(help="Whom it limits; '*' for each.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What it limits; '*' for each.")] = None,
    every: Annotated[
        str | None, typer.Option(help="Begin anew each day, week, month or year.")
    ] = None,
    who: OnRecordOption = None,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Limit what an analyst, a purpose or a period may use of an account.

    Example: [bold]discreet ledger limit salaries --analyst ana --epsilon 1 --every month[/bold]
    """
    with writing(ledger, key) as book:
        account = book[name]
        guarantee = guarantee_of(epsilon, delta, old=account.guarantee)
        receipt = account.limit(guarantee, analyst=analyst, purpose=purpose, every=every, who=who)
        line = unquote(receipt.entries[0]["line"])
        tell(f"Limited {line} of {name} to {guarantee_words(guarantee)}.")


def grant(
    name: NameArgument,
    who: Annotated[str, typer.Option(help="Who decided it.")],
    reason: Annotated[str, typer.Option(help="Why; it stays on record.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The new limit, not what is added to it.")
    ] = None,
    delta: Annotated[str | None, typer.Option(metavar="D", help="The new delta.")] = None,
    line: Annotated[str, typer.Option(help="Which limit, such as analyst=ana.")] = "total",
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Widen a budget. It can never be narrowed again, and everybody can see who widened it.

    Example:
    [bold]discreet ledger grant salaries --epsilon 8 --who board --reason "second survey"[/bold]
    """
    from discreet.ledger import standing

    if epsilon is None and delta is None:
        raise ParameterError("say what to widen: --epsilon, --delta or both.", parameter="epsilon")
    with writing(ledger, key) as book:
        account = book[name]
        limits = standing(account).limits
        exact = next((one for one in limits if line in (one, unquote(one))), line)
        guarantee = guarantee_of(epsilon, delta, old=limits.get(exact))
        account.grant(guarantee, who=who, reason=reason, line=exact)
        tell(f"Widened {unquote(exact)} of {name} to {guarantee_words(guarantee)}.")


def policy(
    name: NameArgument,
    policy: Annotated[Policy, typer.Argument(help="What happens at exhaustion from now on.")],
    who: Annotated[str, typer.Option(help="Who decided it.")],
    reason: Annotated[str, typer.Option(help="Why; it stays on record.")],
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Change what happens at exhaustion: deny, degrade (offer more noise), or wait for a period.

    No guarantee depends on it. Declarations go on stating what it was.

    Example:
    [bold]discreet ledger policy salaries degrade --who board --reason "rough will do"[/bold]
    """
    with writing(ledger, key) as book:
        book[name].set_policy(policy.value, who=who, reason=reason)
        tell(f"Set the policy of {name} to {policy.value}.")


def unit_of(text: str, per: str | None) -> "Unit":
    """Return the unit that was typed.

    >>> unit_of("column:user_id", "day")
    Unit.column('user_id').per('day')
    """
    from discreet.privacy import Unit

    kind, _, column = text.partition(":")
    if kind not in ("record", "column", "household") or (kind == "record") != (text == kind):
        raise ParameterError(
            "unit must be record, column:NAME or household:NAME, such as column:user_id.",
            parameter="unit",
        )
    makers = {"column": Unit.column, "household": Unit.household}
    found = Unit.record() if kind == "record" else makers[kind](column)
    return found if per is None else found.per(per)


def guarantee_of(
    epsilon: str | None, delta: str | None, *, old: "Guarantee | None" = None
) -> "Guarantee":
    """Return the guarantee that was typed; what was not is as in the old one.

    >>> old = guarantee_of("5", "1e-6")
    >>> guarantee_of("8", None, old=old)
    Guarantee(epsilon=8, delta=1e-06)
    """
    from discreet.privacy import Guarantee

    before = Guarantee(epsilon=0) if old is None else old
    return Guarantee(
        epsilon=before.epsilon if epsilon is None else parse(epsilon),
        delta=before.delta if delta is None else parse(delta),
    )
