"""``discreet shuffle send``: be the devices."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import tell
from discreet.cli.shuffle.options import parameters_in, text_of
from discreet.errors import DataError

__all__ = ["send"]


def send(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="Its parameters.")],
    values: Annotated[Path, typer.Argument(metavar="VALUES", help="One value a line.")],
    to: Annotated[str, typer.Option(metavar="URL", help="Where the shuffler is.")],
    analyser: Annotated[str, typer.Option(metavar="KEY", help="The analyser's public key.")],
    tokens: Annotated[
        Path, typer.Option(metavar="FILE", help="One sender's token a line, for each value.")
    ],
) -> None:
    """Randomise, seal and send values as devices would, one device a line. For trials.

    A value is one of the collection's labels, or its number. Nothing is kept of what was sent:
    a real device keeps its budget and what it has sent.

    Example: [bold]discreet shuffle send emoji.json values.txt --to http://127.0.0.1:8100
    --analyser KEY --tokens tokens.txt[/bold]
    """
    from discreet.local.wire import encode
    from discreet.shuffle import Arrival, Envelopes, SealingKey
    from discreet.shuffle.running import deliver

    parameters, key = parameters_in(collection), SealingKey.read(analyser)
    codes = _codes(text_of(values).splitlines(), parameters.values)
    senders = text_of(tokens).split()
    if len(senders) < len(codes):
        raise DataError(f"there are {len(codes)} values, but tokens for {len(senders)} senders.")
    reports = encode(parameters, parameters.randomiser.release(codes))
    envelopes = Envelopes.of(parameters)
    arrivals = [
        Arrival(token, envelopes.seal(report, key=key))
        for token, report in zip(senders, reports, strict=False)
    ]
    delivery = deliver(arrivals, url=to)
    refused = len(arrivals) - delivery.kept
    tell(f"The shuffler keeps {delivery.kept} envelopes and refused {refused}.")


def _codes(lines: Sequence[str], labels: Sequence[str] | None) -> list[int]:
    numbers = {label: code for code, label in enumerate(labels or ())}
    try:
        return [numbers[one] if labels else int(one) for one in lines]
    except (KeyError, ValueError):
        raise DataError("each line must be one of the collection's values.") from None
