"""``discreet shuffle serve`` and ``discreet shuffle analyse``."""

import getpass
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.ledger.opening import writing
from discreet.cli.options import BUDGET, KeyOption, LedgerOption
from discreet.cli.output import tell
from discreet.cli.shuffle.options import AnalyserFile, ShufflerFile

if TYPE_CHECKING:
    from discreet.ledger import Account
    from discreet.shuffle import Analyser

__all__ = ["analyse", "serve"]


def serve(
    file: ShufflerFile,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="On which port.")] = 8100,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For TLS, in PEM.")
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its secret key.")
    ] = None,
    behind_tls: Annotated[
        bool, typer.Option("--behind-tls", help="Something in front of it encrypts.")
    ] = False,
) -> None:
    """Run a shuffler until it is stopped. It writes no log of who sent when.

    Example: [bold]discreet shuffle serve shuffler.db --port 8100[/bold]
    """
    from discreet.shuffle import Shuffler
    from discreet.shuffle.running import serve_shuffler

    with Shuffler.open(file) as shuffler:
        serve_shuffler(
            shuffler,
            host=host,
            port=port,
            certificate=certificate,
            certificate_key=certificate_key,
            is_behind_tls=behind_tls,
        )


def analyse(
    file: AnalyserFile,
    shuffler: Annotated[str, typer.Option(metavar="URL", help="Where the shuffler is.")],
    signed_by: Annotated[str, typer.Option(metavar="KEY", help="The shuffler's public key.")],
    token: Annotated[
        str,
        typer.Option(
            metavar="TOKEN", envvar="DISCREET_SHUFFLE_TOKEN", help="The analyser's secret token."
        ),
    ],
    account: Annotated[str, typer.Option(metavar="NAME", help="The ledger's account that pays.")],
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when there is no batch for the moment.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.01, help="How often to ask for batches.")
    ] = 60.0,
) -> None:
    """Fetch batches, pay the ledger for each, open it, and keep its reports for the estimate.

    Example: [bold]discreet shuffle analyse analyser.db --shuffler http://127.0.0.1:8100
    --signed-by KEY --account emoji --once[/bold]
    """
    from discreet.shuffle import Analyser
    from discreet.shuffle.running import fetch

    with Analyser.open(file) as analyser, writing(ledger, key) as book:
        payer = book[account]
        while True:
            _open(analyser, payer)  # what an earlier run kept and did not come to open
            for _ in fetch(analyser, url=shuffler, shuffler=signed_by, token=token):
                _open(analyser, payer)
            if once:
                return
            time.sleep(seconds)


def _open(analyser: "Analyser", account: "Account") -> None:
    for found in analyser.open_kept(account, who=getpass.getuser()):
        tell(
            f"Batch {found.number}: {found.accepted} reports, {found.dropped} dropped, entry "
            f"{found.entry} of the ledger."
        )
