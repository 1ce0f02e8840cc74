"""A web page asks a delicate question, and no true answer ever leaves a browser.

Each browser tosses coins once, by the module that is served with the page, and the collector has
nothing but what came of it. Further devices answer from Python, so that the estimate converges.
With --stay the page can be opened, answered and watched. Nothing is loaded from anywhere else.
"""

import argparse
import contextlib
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from discreet import local
from discreet.ledger import Ledger
from discreet.local.browser import read_module
from discreet.local.collection.app import CollectorLimits, collector
from discreet.local.wire import encode
from discreet.privacy import Guarantee, Unit

EPSILON, MINIMUM = 1, 250
TRUE_SHARE = 0.12  # of the devices in Python
STEPS = 10
PAGE = Path(__file__).parent / "survey_page"
SCRIPT = "text/javascript"
FILES = {
    "/": ("text/html", (PAGE / "index.html").read_bytes()),
    "/survey.css": ("text/css", (PAGE / "survey.css").read_bytes()),
    "/survey.js": (SCRIPT, (PAGE / "survey.js").read_bytes()),
    "/discreet-local.min.js": (SCRIPT, read_module()),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Survey:
    """A collection and where it is asked for."""

    collection: local.Collection
    address: str

    def send(self, answers: Any) -> None:
        """Answer as so many devices: 1 is yes; what is sent went through their coins."""
        parameters = self.collection.parameters
        body = b"".join(encode(parameters, parameters.randomiser.release(answers)))
        httpx.post(f"{self.address}/reports", content=body).raise_for_status()

    def estimate(self) -> dict[str, Any]:
        """Return what the collector tells everybody."""
        return dict(httpx.get(f"{self.address}/estimate").raise_for_status().json())


@contextlib.contextmanager
def opened_survey(*, port: int = 0) -> Iterator[Survey]:
    """Open a collection on a ledger, and serve its page; both end with the block."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ledger = Ledger.open(Path(folder) / "budget.db")
        stack.callback(ledger.close)
        ledger.create(
            "browsers",
            unit=Unit.column("browser"),
            neighbours="replace_one",
            guarantee=Guarantee(epsilon=EPSILON),
        )
        collection = stack.enter_context(
            local.Collection.open(
                ledger,
                Path(folder) / "survey.db",
                name="a delicate question",
                account="browsers",
                randomiser=local.DirectResponse(domain=2, epsilon=EPSILON),
                values=["no", "yes"],
                a_day=EPSILON,
                lifetime=EPSILON,  # one answer
                minimum=MINIMUM,
                who="the pollster",
                purpose="how many have driven after drinking",
            )
        )
        address = stack.enter_context(served(application(collection), port=port))
        yield Survey(collection, address)


def application(collection: local.Collection) -> Starlette:
    """Return the page's application, with the collector behind it."""

    def file(request: Request) -> Response:
        kind, body = FILES[request.url.path]
        return Response(body, media_type=kind, headers=HEADERS)

    # All devices in Python have one address. Whoever asks gets the latest estimate.
    limits = CollectorLimits(reports_per_minute=0, seconds=0)
    pages = [Route(path, file) for path in FILES]
    return Starlette(routes=[*pages, Mount("/", collector(collection, limits=limits))])


@contextlib.contextmanager
def served(app: Starlette, *, port: int) -> Iterator[str]:
    """Serve on this machine; browsers take it for a secure place, as Web Crypto needs one."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def converge(survey: Survey, *, browsers: int, seconds: float) -> None:
    """Let more and more devices answer, and print what is known after each step."""
    people = np.random.default_rng(2026)  # the people, not the coins
    print(f"{'answers':>9}{'yes':>8}{'two standard errors':>21}  0%{'35%':>34}")
    came, number = 0, 0
    for n in np.geomspace(min(MINIMUM, browsers), browsers, STEPS).astype(int).tolist():
        survey.send(people.random(n - came) < TRUE_SHARE)
        came = n
        published = survey.estimate()["published"]
        if published and published["publication"] > number:
            print(row(published), flush=True)
            number = published["publication"]
        time.sleep(seconds)


def row(published: dict[str, Any]) -> str:
    """Write a published estimate as a line, with its interval."""
    n, parts = published["n"], published["estimate"]
    share, error = parts["counts"][1] / n, parts["standard_error"][1] / n
    low, high = max(0.0, share - 2 * error), min(1.0, share + 2 * error)
    bar = "".join("#" if low <= place / 100 <= high else "." for place in range(36))
    return f"{n:>9,}{share:>8.1%}{low:>9.1%} to {high:>6.1%}    {bar}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the survey, let devices answer, and print how the estimate converges."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browsers", type=int, default=20_000, help="further devices, in Python")
    parser.add_argument("--port", type=int, default=0, help="any free one, unless told")
    parser.add_argument("--stay", action="store_true", help="serve until Ctrl-C, and take time")
    said = parser.parse_args(arguments)

    with opened_survey(port=said.port) as survey, contextlib.suppress(KeyboardInterrupt):
        if said.stay:
            print(f"Open {survey.address} in a browser.\n", flush=True)
        print(f"{said.browsers:,} devices answer, of which {TRUE_SHARE:.0%} would say yes.\n")
        converge(survey, browsers=said.browsers, seconds=5 if said.stay else 0)
        print(f"\nEach report has epsilon {EPSILON}: any of them may be the opposite of the truth.")
        print(f"An estimate is published when {MINIMUM} are new. To answer yourself: --stay")
        while said.stay:
            time.sleep(1)


if __name__ == "__main__":
    main()
