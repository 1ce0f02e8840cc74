"""The gateway of the demo as a process of its own, and what a browser shows of it."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from gateway_sites import asked

from discreet.service import make_demo

AXE = Path(__file__).parents[1] / ".programs" / "axe.min.js"
GUARD = re.compile(r'name="guard" value="(\w+)"')
FORM_KEY = re.compile(r'name="key" value="([\w-]+)"')


@dataclass(frozen=True, kw_only=True)
class PageSite:
    """Where the gateway is, the keys of its logins, and what it has logged."""

    address: str
    keys: dict[str, str]
    log: Path
    config: Path

    def header(self, who):
        return {"Authorization": f"Bearer {self.keys[who]}"} if who else {}


@contextlib.contextmanager
def demo_gateway(folder, *, workers=1, **settings):
    """Run ``discreet serve`` on the data of the demo: salaries and people.

    ``settings`` go before those of the demo; answers are given here as soon as they are ready.
    """
    demo = make_demo(folder)
    told = {"answer_after": 0.0, **settings}
    lines = [one for one in demo.config.read_text().splitlines() if one.split(" ")[0] not in told]
    lines += [f"{name} = {json.dumps(value)}" for name, value in told.items()]
    demo.config.write_text("\n".join(lines))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "discreet", "serve", "--config", str(demo.config)]
    log = folder / "log.txt"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--workers", str(workers)],
            stdout=written, stderr=written, cwd=folder,
        )  # fmt: skip
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if asked(port, "GET", "/readyz")[0] == 200:
                    break
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield PageSite(
            address=f"http://127.0.0.1:{port}", keys=demo.keys, log=log, config=demo.config
        )
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def sign_in(page, site, who):
    """Sign a browser in, as a person would."""
    page.goto(f"{site.address}/sign-in")
    page.get_by_label(re.compile("API key")).fill(site.keys[who])
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


def signed_in(client, site, who):
    """Sign a client of HTTP in; it keeps the cookie. Return the guard of its forms."""
    guard = GUARD.search(client.get("/sign-in").text)[1]
    found = client.post(
        "/sign-in",
        data={"guard": guard, "token": site.keys[who]},
        headers={"Origin": str(client.base_url).rstrip("/")},
        follow_redirects=False,
    )
    assert found.status_code == 303, found.text
    return GUARD.search(client.get("/").text)[1]


def barriers(page):
    """Return what axe-core calls a serious or critical barrier on a page."""
    # A script tag would be refused by the page's own policy, as it should be.
    page.evaluate(AXE.read_text() + "; undefined")
    found = page.evaluate("axe.run(document)")["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:3]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def is_wider_than_screen(page):
    """Say whether somebody has to scroll sideways."""
    width = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    return page.evaluate(width)
