"""Put the kept figures of all audits into their page: python docs/make_catalogue.py."""

import re
from pathlib import Path

from discreet.audit import kept_catalogue

PAGE = Path(__file__).parent / "explanation" / "audit-catalogue.md"
PLACE = re.compile(r"<!-- catalogue -->.*<!-- /catalogue -->", re.S)


def page(text: str) -> str:
    """Return the page with the table that is kept, and where it is from."""
    kept = kept_catalogue()
    most = max(line.samples for line in kept.report.lines)
    told = (
        f"From {kept.day}, version {kept.version}, up to {most:,} samples of each input: "
        f"`{kept.command}`.\n\n"
    )
    table = f"<!-- catalogue -->\n{told}{kept.report.to_markdown()}\n<!-- /catalogue -->"
    return PLACE.sub(lambda _: table, text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
