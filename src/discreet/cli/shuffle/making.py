"""``discreet shuffle new-analyser``, ``new-shuffler`` and ``admit``."""

from typing import Annotated

import typer

from discreet.cli.numbers import parse_exactly
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json, tell, tell_command
from discreet.cli.shuffle.options import (
    AnalyserFile,
    CollectionOption,
    MinimumOption,
    ShufflerFile,
    parameters_in,
)

__all__ = ["admit", "new_analyser", "new_shuffler"]


def new_analyser(
    file: AnalyserFile,
    collection: CollectionOption,
    minimum: MinimumOption,
    honest: Annotated[
        str, typer.Option(metavar="SHARE", help="Of the senders, taken to be honest: 0.9.")
    ],
    delta: Annotated[
        str, typer.Option(metavar="D", help="What each batch may take of the account's delta.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Set up an analyser: its secret key and its state, in a new file.

    Example: [bold]discreet shuffle new-analyser analyser.db --collection emoji.json --minimum 1000
    --honest 0.9 --delta 1e-8[/bold]
    """
    from discreet.shuffle import Analyser, AnalyserSettings

    settings = AnalyserSettings(
        parameters=parameters_in(collection),
        minimum=minimum,
        honest=parse_exactly(honest),
        delta=parse_exactly(delta),
    )
    with Analyser.make(file, settings) as analyser:
        key = analyser.key.text
    if as_json:
        echo_json({"analyser": key})
        return
    tell(f"{file} holds the only key that opens the reports. Its public half, for the shuffler:")
    tell_command(f"  {key}")


def new_shuffler(
    file: ShufflerFile,
    collection: CollectionOption,
    minimum: MinimumOption,
    analyser: Annotated[str, typer.Option(metavar="KEY", help="The analyser's public key.")],
    limit: Annotated[
        int, typer.Option(metavar="N", help="Envelopes of one sender in a batch.")
    ] = 1,
    dummies: Annotated[
        int, typer.Option(metavar="N", help="Reports of random values, added to every batch.")
    ] = 0,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="How often to look whether a batch can leave.")
    ] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Set up a shuffler: its keys and its state, in a new file.

    Example: [bold]discreet shuffle new-shuffler shuffler.db --collection emoji.json --minimum 1000
    --analyser KEY[/bold]
    """
    from discreet.shuffle import SealingKey, Shuffler, ShufflerSettings

    settings = ShufflerSettings(
        parameters=parameters_in(collection),
        analyser=SealingKey.read(analyser),
        minimum=minimum,
        limit=limit,
        dummies=dummies,
        seconds=seconds,
    )
    with Shuffler.make(file, settings) as shuffler:
        key, token = shuffler.key, shuffler.analyser_token()
    if as_json:
        echo_json({"shuffler": key, "token": token})
        return
    tell("For the analyser: the key that signs batches, and a secret token that fetches them.")
    tell_command(f"  {key}")
    tell_command(f"  {token}")
    tell(f"Let senders in with: discreet shuffle admit {file} 1000")


def admit(
    file: ShufflerFile,
    count: Annotated[int, typer.Argument(metavar="N", help="For how many senders.")],
) -> None:
    """Print secret tokens for new senders, one a line: one for each person or device.

    Whoever has two tokens counts as two, so give nobody a second one.

    Example: [bold]discreet shuffle admit shuffler.db 1000 > tokens.txt[/bold]
    """
    from discreet.shuffle import Shuffler

    with Shuffler.open(file) as shuffler:
        typer.echo("\n".join(shuffler.admit(count)))
