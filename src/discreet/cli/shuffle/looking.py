"""``discreet shuffle estimate`` and ``discreet shuffle show``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.numbers import parse
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json, tell
from discreet.cli.shuffle.options import AnalyserFile
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.shuffle import Analyser, Shuffler

__all__ = ["estimate", "show"]

_SHOWN = 20


def estimate(
    file: AnalyserFile,
    confidence: Annotated[
        str, typer.Option(metavar="C", help="With which all intervals hold together.")
    ] = "0.95",
    as_json: JsonOption = False,
) -> None:
    """Estimate from all batches that were opened. It costs nothing more.

    Example: [bold]discreet shuffle estimate analyser.db[/bold]
    """
    from discreet.shuffle import Analyser

    with Analyser.open(file) as analyser:
        found = analyser.estimate()
        labels = analyser.settings.parameters.values or ()
        document = {"batches": len(analyser.opened), **_cost(analyser)}
    if not hasattr(found, "counts"):
        tell(str(found))
        return
    low, high = found.interval(confidence=parse(confidence))
    rows = [
        {"value": labels[i] if labels else i, "count": count, "low": low[i], "high": high[i]}
        for i, count in enumerate(found.counts.tolist())
    ]
    rows.sort(key=lambda row: -row["count"])
    if as_json:
        echo_json(document | {"reports": found.n, "counts": rows})
        return
    tell(f"{found.n} reports of {document['batches']} batches; {document['says']}")
    for row in rows[:_SHOWN]:
        tell(f"{row['value']:>12}  {row['count']:.0f}  ({row['low']:.0f} to {row['high']:.0f})")
    if len(rows) > _SHOWN:
        tell(f"{len(rows) - _SHOWN} more with --json.")


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="State of either.")],
    as_json: JsonOption = False,
) -> None:
    """Show the public key of a shuffler or an analyser, and what it has done.

    Example: [bold]discreet shuffle show shuffler.db[/bold]
    """
    from discreet.shuffle import Analyser, Shuffler

    document: dict[str, Any]
    try:
        with Shuffler.open(file) as shuffler:
            document = _of_shuffler(shuffler)
    except ParameterError:
        with Analyser.open(file) as analyser:
            document = _of_analyser(analyser)
    if as_json:
        echo_json(document)
        return
    for name, value in document.items():
        tell(f"{name}: {value}")


def _of_shuffler(shuffler: "Shuffler") -> dict[str, Any]:
    envelopes, senders = shuffler.waiting
    settings = shuffler.settings
    return {
        "shuffler": shuffler.key,
        "collection": settings.parameters.collection,
        "analyser": settings.analyser.text,
        "minimum": settings.minimum,
        "envelopes waiting": envelopes,
        "senders waiting": senders,
        **shuffler.counts,
    }


def _of_analyser(analyser: "Analyser") -> dict[str, Any]:
    opened = analyser.opened
    return {
        "analyser": analyser.key.text,
        "collection": analyser.settings.parameters.collection,
        "batches opened": len(opened),
        "reports": sum(one.accepted for one in opened),
        "dropped": sum(one.dropped for one in opened),
        **_cost(analyser),
    }


def _cost(analyser: "Analyser") -> dict[str, Any]:
    """Say what the batches cost somebody who is in all of them, and what if fewer are honest."""
    from discreet.shuffle import composed

    paid = analyser.amplifications
    if not paid:
        return {"says": "nothing was opened."}
    last, delta = paid[-1], sum(float(one.delta) for one in paid)
    total = composed(paid, delta=delta)
    fewer = "; ".join(f"{epsilon:.3g} if {n} are honest" for n, epsilon in last.if_fewer())
    return {
        "epsilon": total,
        "delta": delta,
        "says": (
            f"whoever is in all of them has epsilon {total:.3g} at delta {delta:.2g}, and "
            f"epsilon {float(last.epsilon0):.3g} for each report if shuffler and analyser work "
            f"together. The last batch: epsilon {last.epsilon_2023:.3g} ({last.epsilon_2021:.3g} "
            f"by the analysis of 2021) as {last.honest} reports are taken to be honest; {fewer}."
        ),
    }
