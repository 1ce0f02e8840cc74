"""``discreet serve``: run a gateway, try one on generated data, or check how one is set up."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.ledger.opening import place
from discreet.cli.numbers import shown
from discreet.cli.output import tell, tell_command
from discreet.cli.service.options import ConfigOption, place_of
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.service import Demo, Gateway, GatewaySettings

__all__ = ["serve"]

_OF_DATA = re.compile(r"DISCREET_SERVE_(DATA|DATASETS|LEDGER|LEDGER_KEY|RECORDS)(_FILE)?")


def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen.")] = None,
    port: Annotated[int | None, typer.Option(metavar="N", help="For HTTP; 8000.")] = None,
    pg_port: Annotated[
        int | None, typer.Option(metavar="N", help="For PostgreSQL's protocol; none.")
    ] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Processes; 1.")] = None,
    pages: Annotated[
        bool | None, typer.Option("--pages/--no-pages", help="Pages for browsers; yes.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve generated data.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check the settings, open everything, and end.")
    ] = False,
) -> None:
    """Serve protected tables over HTTP, and to PostgreSQL clients.

    Settings come from a file, then DISCREET_SERVE_... in the environment, then options.

    Example: [bold]discreet serve --demo[/bold]
    """
    from discreet.service import check_ports, read_settings
    from discreet.service import serve as run

    given: dict[str, Any] = {
        "host": host, "port": port, "pg_port": pg_port, "workers": workers, "pages": pages,
    }  # fmt: skip
    flags = {name: value for name, value in given.items() if value is not None}
    if demo and config is not None:
        raise ParameterError("say --demo or --config, not both.", parameter="demo")
    with _place(config, demo=demo) as (place, made):
        settings = read_settings(place, flags=flags)
        if check:
            _check(settings)
            return
        check_ports(settings)
        if made is not None:
            _welcome(settings, made)
        run(settings, config=place, flags=flags)


@contextmanager
def _place(config: Path | None, *, demo: bool) -> "Iterator[tuple[Path | None, Demo | None]]":
    if not demo:
        yield place_of(config), None
        return
    from discreet.service import make_demo

    # The environment goes before the demo's own settings file: it may speak of a real ledger.
    told = [name for name in sorted(os.environ) if _OF_DATA.fullmatch(name)]
    if told:
        raise ParameterError(
            f"--demo has data and a ledger of its own: unset {', '.join(told)} first.",
            parameter="demo",
        )
    with TemporaryDirectory(prefix="discreet-demo-") as folder:
        made = make_demo(Path(folder))
        yield made.config, made


def _welcome(settings: "GatewaySettings", demo: "Demo") -> None:
    scheme = "http" if settings.certificate is None else "https"
    url = f"{scheme}://{settings.host}:{settings.port}"
    tell(f"The gateway is at {url}, with generated salaries and people. Its logins:", bold=True)
    for who, role in (("ana", "analyst"), ("chris", "custodian"), ("audrey", "auditor")):
        tell(f"  {who:7} {role:10} {demo.keys[who]}")
    if settings.pages:
        tell("Open it in a browser, and sign in with one of these keys:")
        tell_command(f"  {url}/")
    tell("Ask it from another terminal:")
    body = '{"question": "SELECT AVG(salary) AS pay FROM salaries", "epsilon": 0.5}'
    tell_command(
        f"  curl {url}/v1/datasets/salaries/query -H 'Authorization: Bearer {demo.keys['ana']}' \\"
    )
    tell_command(f"    -H 'Content-Type: application/json' -d '{body}'")
    if settings.pg_port is not None:
        user = demo.keys["ana"].split("_")[1]
        tell_command(
            f"  PGPASSWORD={demo.keys['ana']} psql -h {settings.host} -p {settings.pg_port} \\"
        )
        tell_command(f"    -U {user} salaries")
    tell("It ends with Ctrl-C, and its folder is gone then.")


def _check(settings: "GatewaySettings") -> None:
    """Open everything as a worker would, and say what is served and what to think of."""
    from discreet.service import Gateway, check_servable

    check_servable(settings)
    gateway = Gateway.open(settings)
    try:
        for served in gateway.shelf:
            waits = f"answers after {served.seconds:g} s" if served.seconds else "answers at once"
            total = served.tables.account.guarantee
            promised = f"epsilon {shown(total.epsilon)}, delta {shown(total.delta)}"
            left = f"{math.floor(100 * served.tables.remaining)}% left"
            tell(f"{served.tables.name}: {promised}, {left}, {waits}")
        tell(f"ledger: {place(settings.ledger)}, {gateway.shelf.ledger.size} entries")
        tell(f"records: {place(settings.records_location)}")
        for note in _notes(settings, gateway):
            tell(f"note: {note}")
    finally:
        gateway.close()
    scheme = "http" if settings.certificate is None else "https"
    address = f"{scheme}://{settings.host}:{settings.port}"
    tell(f"The settings are sound. discreet serve would listen on {address}.")


def _notes(settings: "GatewaySettings", gateway: "Gateway") -> Iterator[str]:
    from discreet.service import all_keys

    if any(not served.seconds for served in gateway.shelf):
        yield "answer_after is 0: how long answers take tells about the data."
    if any(served.seconds > settings.shutdown_seconds for served in gateway.shelf):
        yield (
            "shutdown_seconds is less than answer_after: answers under way when it is stopped are "
            "charged and not given."
        )
    if settings.certificate is None and settings.public_url is None:
        yield "there is no certificate, so it can be reached from this machine only."
    custodians = [one for one in all_keys(gateway.records) if "custodian" in one.roles]
    if not custodians and not settings.issuers:
        yield "nobody can log in as custodian yet: discreet keys create NAME --role custodian"
    for name, why in gateway.shelf.unserved.items():
        yield f"{name}, which was registered over HTTP, cannot be served: {why}"
    if not gateway.shelf.names:
        yield "nothing is served yet."
