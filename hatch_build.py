"""What the package index and the wheel get besides the code: README's links, and the built site."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.S)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)")


class Readme(MetadataHookInterface):
    """Give README to the index with links that work there."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Lead links into the source that `[project.urls]` names, or keep their words alone."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readme_elsewhere(text, source=source),
        }


class Site(BuildHookInterface[Any]):
    """Put the documentation into the wheel, if `make docs` has built it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder; an editable install has it in the checkout."""
        site = Path(self.root) / "site"
        if version != "editable" and (site / "index.html").is_file():
            build_data["force_include"][str(site)] = "discreet/site"


def readme_elsewhere(text: str, *, source: str | None) -> str:
    """Return README for readers who have no files beside it.

    A link that leads nowhere is worse than none: without an address of the source only the words of
    links are kept, and pictures are left out.
    """
    text = PICTURE.sub("", text)
    if source is None:
        return LINK.sub(r"\1", text)
    return LINK.sub(rf"[\1]({source.rstrip('/')}/blob/main/\2)", text)
