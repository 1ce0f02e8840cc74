"""Take pictures of the gateway's pages: python docs/make_screenshots.py --out FOLDER.

They show generated data. Each page is taken in light, dark, and as a phone shows it. It needs
chromium and playwright.
"""

import argparse
import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import uvicorn

from discreet.service import Gateway, create_app, make_demo, read_settings

BY_DEPARTMENT: Final = (
    "SELECT department, COUNT(*) AS n, AVG(salary) AS pay\nFROM salaries GROUP BY department"
)
BY_EDUCATION: Final = (
    "SELECT education, COUNT(*) AS people, AVG(income) AS income, AVG(age) AS age\n"
    "FROM people GROUP BY education ORDER BY education"
)
PAY: Final = "SELECT AVG(salary) AS pay, COUNT(*) AS n FROM salaries"
MISTYPED: Final = "SELECT AVG(salry) AS pay FROM salaries"
Steps = Callable[[Any, str], None]


def stay(page: Any, address: str) -> None:
    """Do nothing but look."""


@dataclass(frozen=True)
class Shot:
    """One picture: its name, whose login it takes (None: nobody's), where, and what to do there."""

    name: str
    who: str | None
    path: str
    steps: Steps = stay


def asked(dataset: str, question: str, amount: str, pay: str = "share") -> str:
    """Return the address of a dataset's page with a question on it."""
    return f"/datasets/{dataset}?{urlencode({'question': question, 'pay': pay, 'amount': amount})}"


def run(page: Any, address: str) -> None:
    """Pay for what is priced, and stay at the answer."""
    page.locator("form[data-run] button").first.click()
    page.wait_for_url("**/answers/*")


def first_receipt(page: Any, address: str) -> None:
    """Follow the link to a receipt."""
    page.get_by_role("link", name="receipt").first.click()
    page.wait_for_url("**/receipts/*")


def explored(page: Any, address: str) -> None:
    """Pay for the first ready questions, and look at the truth."""
    for number in range(4):
        page.locator(".ready a").nth(number).click()
        page.wait_for_load_state()
        page.locator("#price form button").click()
        page.wait_for_load_state()
    page.get_by_role("button", name="Show the truth").click()
    page.wait_for_load_state()


def trained(page: Any, address: str) -> None:
    """Train to the end."""
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Finished:").wait_for(timeout=90_000)


SHOTS: Final = (
    Shot("front", None, "/"),
    Shot("sign-in", None, "/sign-in"),
    Shot("datasets", "ana", "/datasets"),
    Shot("dataset", "ana", "/datasets/people"),
    Shot("priced", "ana", asked("people", BY_EDUCATION, "5%")),
    Shot("answer", "ana", asked("people", BY_EDUCATION, "5%"), run),
    Shot("number", "ana", asked("salaries", PAY, "0.5", "epsilon"), run),
    Shot("exhausted", "ana", asked("salaries", BY_DEPARTMENT, "6", "epsilon")),
    Shot("refused", "ana", asked("salaries", MISTYPED, "5%")),
    Shot("history", "ana", "/datasets/people/history"),
    Shot("receipt", "ana", "/datasets/people/history", first_receipt),
    Shot("nowhere", None, "/no-such-page"),
    Shot("explorer", None, "/explorer", explored),
    Shot("training", None, "/training", trained),
)  # fmt: skip
WAYS: Final = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 860}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, dict[str, str]]]:
    """Serve the demo from a thread; yield its address and the keys of its logins."""
    with tempfile.TemporaryDirectory() as folder:
        demo = make_demo(Path(folder))
        settings = read_settings(demo.config, environment={}, flags={"answer_after": 3.0})
        app = create_app(Gateway.open(settings))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", demo.keys
        finally:
            server.should_exit = True
            thread.join(30)


def take(browser: Any, shot: Shot, way: str, address: str, keys: dict[str, str]) -> bytes:
    """Return one picture, of the whole page."""
    context = browser.new_context(**WAYS[way], reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    if shot.who is not None:
        page.goto(f"{address}/sign-in")
        page.locator("#token").fill(keys[shot.who])
        page.get_by_role("main").get_by_role("button").click()
        page.get_by_role("button", name="Sign out").wait_for()
    page.goto(f"{address}{shot.path}", wait_until="networkidle")
    shot.steps(page, address)
    page.wait_for_timeout(300)
    picture: bytes = page.screenshot(full_page=True)
    context.close()
    return picture


def main() -> None:
    """Write all pictures, or those of which the names are given."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("names", nargs="*", help="only these pictures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with serving() as (address, keys), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        for shot in SHOTS:
            for way in WAYS if not given.names or shot.name in given.names else ():
                place = given.out / f"{shot.name}-{way}.png"
                place.write_bytes(take(browser, shot, way, address, keys))
                print(place)
        browser.close()


if __name__ == "__main__":
    main()
