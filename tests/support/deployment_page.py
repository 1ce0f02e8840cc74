"""The page about deployment, as tests read it: its sections, blocks and tables."""

import re
from pathlib import Path

__all__ = ["ABOUT", "DEPLOY", "PORT", "ROOT", "blocks", "section", "table"]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs/how-to/deploy"
PAGE = (ROOT / "docs/how-to/deploy-a-gateway.md").read_text()
ABOUT = (ROOT / "docs/explanation/service.md").read_text()
PORT = "8443"


def section(title):
    """Return what stands under a heading of the page."""
    found = re.search(rf"^## (?:\d\. )?{re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    assert found, title
    return found[1]


def blocks(title, kind="sh"):
    return re.findall(rf"```{kind}\n(.*?)```", section(title), re.S)


def table(text):
    """Return the rows of the first table, as lists of cells."""
    lines = re.search(r"((?:^\|.*\n)+)", text, re.M)[1].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
