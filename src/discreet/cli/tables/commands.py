"""Ask protected tables, from a terminal."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from discreet.cli.numbers import parse
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json, tell
from discreet.cli.tables import options
from discreet.cli.tables.answer_files import AnswerFiles
from discreet.cli.tables.opening import NameArgument, PurposeOption, WhoOption, opened
from discreet.cli.tables.protecting import protect
from discreet.cli.tables.unprotecting import unprotect

if TYPE_CHECKING:
    from discreet.tables import Offer

__all__ = ["register"]

QuestionArgument = Annotated[str, typer.Argument(metavar="SQL", help="The question, in SQL.")]
PriceOption = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="Pay so much: the guarantee of this answer alone."),
]
DeltaOption = Annotated[
    str | None,
    typer.Option("--delta", metavar="D", help="Its delta; 1% of the account's if not said."),
]
ShareOption = Annotated[
    str | None, typer.Option("--share", metavar="S", help='Or a share of the budget, as "5%".')
]
WithinOption = Annotated[
    str | None,
    typer.Option("--within", metavar="W", help="Or whatever gives an error of at most this."),
]
OfOption = Annotated[
    str | None,
    typer.Option("--of", metavar="V", help="With --within 5%: about how large the answer is."),
]
ConfidenceOption = Annotated[
    str, typer.Option(metavar="C", help="How sure the error bars shall be.")
]
SizeOption = Annotated[
    int | None, typer.Option(metavar="N", help="How many rows a group has, if you know.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> [command.name for command in app.registered_commands]
    ['protect', 'unprotect', 'quote', 'query']
    """
    app.command("protect")(protect)
    app.command("unprotect")(unprotect)
    app.command("quote")(quote)
    app.command("query")(query)


def quote(
    name: NameArgument,
    question: QuestionArgument,
    epsilon: PriceOption = None,
    delta: DeltaOption = None,
    share: ShareOption = None,
    within: WithinOption = None,
    of: OfOption = None,
    confidence: ConfidenceOption = "0.95",
    size: SizeOption = None,
    who: WhoOption = None,
    purpose: PurposeOption = "analysis",
    as_json: JsonOption = False,
) -> None:
    """Say what a question costs and how far off its answer would be. Nothing is spent.

    Example: [bold]discreet quote people 'SELECT region, COUNT(*) FROM people GROUP BY region'
    --within 100[/bold]
    """
    with opened(name, who=who, purpose=purpose) as protected:
        offer = _offer(epsilon, delta, share, within, of, confidence, size)
        quoted = protected.quote(question, offer)
    if as_json:
        echo_json(quoted.to_dict())
    else:
        Console().print(Text(str(quoted)), soft_wrap=True)


def query(
    name: NameArgument,
    question: QuestionArgument,
    epsilon: PriceOption = None,
    delta: DeltaOption = None,
    share: ShareOption = None,
    within: WithinOption = None,
    of: OfOption = None,
    confidence: ConfidenceOption = "0.95",
    size: SizeOption = None,
    who: WhoOption = None,
    purpose: PurposeOption = "analysis",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say in plain words what was done.")
    ] = False,
    csv: options.CsvOption = None,
    xlsx: options.XlsxOption = None,
    plot: options.PlotOption = None,
    receipt: options.ReceiptOption = None,
    card: options.CardOption = None,
    memory: options.MemoryOption = None,
    disk: options.DiskOption = None,
    seconds: options.SecondsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question privately, and pay for it.

    Example: [bold]discreet query people 'SELECT COUNT(*) AS n FROM people' --epsilon 0.1
    --csv n.csv[/bold]
    """
    outputs = AnswerFiles(csv=csv, xlsx=xlsx, plot=plot, receipt=receipt, card=card)
    offer = _offer(epsilon, delta, share, within, of, confidence, size)
    outputs.check()
    limits = (memory, disk, seconds)
    with opened(name, who=who, purpose=purpose, limits=limits) as protected:
        result = protected.sql(question, offer)
        if as_json:
            typer.echo(json.dumps(result.to_dicts(), default=str, allow_nan=False))
        else:
            Console().print(result)
            if explain:
                Console().print(Text(result.explain()))
        written = outputs.write(result, protected.account.ledger)
    if written and not as_json:
        tell(f"Wrote {', '.join(map(str, written))}.")


def _offer(
    epsilon: str | None,
    delta: str | None,
    share: str | None,
    within: str | None,
    of: str | None,
    confidence: str,
    size: int | None,
) -> "Offer":
    from discreet.tables import Offer

    return Offer(
        epsilon=None if epsilon is None else parse(epsilon),
        delta=None if delta is None else parse(delta),
        share=share,
        within=None if within is None else parse(within),
        of=None if of is None else parse(of),
        confidence=parse(confidence),
        size=size,
    )
