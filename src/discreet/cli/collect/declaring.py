"""``discreet collect init``: declare what is asked of devices, and pay for it."""

import getpass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.collect.opening import file_of, parameters_file
from discreet.cli.ledger.opening import writing
from discreet.cli.numbers import parse_exactly, shown
from discreet.cli.options import BUDGET, EpsilonOption, KeyOption, LedgerOption
from discreet.cli.output import tell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.local import Collection

__all__ = ["init", "lines_of"]


class Randomiser(StrEnum):
    """How devices answer."""

    direct = "direct"
    hadamard = "hadamard"
    projective = "projective"
    public_hashing = "public-hashing"


RandomiserOption = Annotated[
    Randomiser | None, typer.Option(help="How devices answer; what fits best if not said.")
]
ScheduleOption = Annotated[
    bool,
    typer.Option(
        "--public-schedule", help="Devices report by a public schedule, whatever they hold."
    ),
]


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What devices know it by.")],
    account: Annotated[
        str, typer.Option(metavar="NAME", help="Who pays: one whose relation is replace_one.")
    ],
    epsilon: EpsilonOption,
    per_day: Annotated[
        str, typer.Option("--per-day", metavar="E", help="The most that a device spends a day.")
    ],
    lifetime: Annotated[
        str, typer.Option(metavar="E", help="The most that a device ever spends: it is charged.")
    ],
    minimum: Annotated[int, typer.Option(metavar="N", help="Publish from so many new reports on.")],
    values: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The possible values, one in a line.")
    ] = None,
    domain: Annotated[
        int | None, typer.Option(metavar="K", help="Or how many there are, numbered from 0.")
    ] = None,
    randomiser: RandomiserOption = None,
    public_participation: ScheduleOption = False,
    who: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who asks; you, if not said.")
    ] = None,
    purpose: Annotated[str, typer.Option(metavar="TEXT", help="What for.")] = "collection",
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Declare a collection, and charge what a device may ever say in it.

    It makes NAME.reports, which takes the reports, and NAME.parameters.json, which devices get.

    Example: [bold]discreet collect init emoji --account devices --values emoji.txt --epsilon 1
    --per-day 1 --lifetime 30 --minimum 1000[/bold]
    """
    from discreet.local import Collection

    path = file_of(name)
    if path.exists():
        raise ParameterError(
            f"{path} exists already. Nothing was charged. Choose another name, or look at it with: "
            f"discreet collect show {name}",
            parameter="name",
        )
    labels = None if values is None else lines_of(values, parameter="values")
    size = _size(labels, domain)
    with writing(ledger, key) as book:
        opening = Collection.open(
            book,
            path,
            name=path.name.removesuffix(path.suffix),
            account=account,
            randomiser=_randomiser(randomiser, size=size, epsilon=epsilon, minimum=minimum),
            values=labels,
            a_day=parse_exactly(per_day),
            lifetime=parse_exactly(lifetime),
            minimum=minimum,
            who=getpass.getuser() if who is None else who,
            purpose=purpose,
            participation_is_public=public_participation,
        )
        with opening as collection:
            parameters_file(path).write_bytes(collection.parameters.canonical + b"\n")
            _told(collection, path, used=book[account].used)


def lines_of(path: Path, *, parameter: str) -> list[str]:
    """Return the lines of a text file, without empty ones."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{path} cannot be read as text.", parameter=parameter) from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _size(labels: list[str] | None, domain: int | None) -> int:
    if (labels is None) == (domain is None):
        raise ParameterError(
            "say what the possible values are: --values FILE with one in a line, or --domain K for "
            "the numbers below K.",
            parameter="values",
        )
    return len(labels) if labels is not None else int(domain or 0)


def _randomiser(chosen: Randomiser | None, *, size: int, epsilon: str, minimum: int) -> Any:
    from discreet import local

    budget = parse_exactly(epsilon)
    if chosen is None:
        return local.choose(domain=size, epsilon=budget, n=minimum).randomiser
    kinds = {
        Randomiser.direct: local.DirectResponse,
        Randomiser.hadamard: local.HadamardResponse,
        Randomiser.projective: local.ProjectiveResponse,
        Randomiser.public_hashing: local.PublicHashing,
    }
    return kinds[chosen](domain=size, epsilon=budget)


def _told(collection: "Collection", path: Path, *, used: float) -> None:
    """Say what was charged, and what comes next."""
    dues, account = collection.dues, collection.terms.account
    kind = collection.parameters.document["randomiser"]["kind"]
    each = "" if dues.period is None else f" each {dues.period}"
    tell(f"Opened {path}: {kind} response, at most {dues.reports} reports of a device{each}.")
    tell(f"Charged epsilon {shown(dues.loss.epsilon_pure)} to {account}{each}: {used:.1%} used.")
    tell(f"Devices get {parameters_file(path)}. Take their reports with:")
    tell(f"  discreet collect serve {collection.terms.parameters.name}")
