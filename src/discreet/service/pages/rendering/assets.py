"""Styles and scripts, all from this package: their address changes whenever one of them does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, final

__all__ = ["Asset", "Assets"]

_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file, read into memory."""

    media_type: str
    content: bytes


@final
class Assets:
    """All files under ``static``, at addresses that browsers may keep for ever.

    >>> assets = Assets()
    >>> assets.address("pages.css") == f"/assets/{assets.version}/pages.css"
    True
    """

    def __init__(self) -> None:
        root = files("discreet.service.pages").joinpath("static")
        self._found: Mapping[str, Asset] = dict(sorted(_below(root, "")))
        digest = sha256()
        for name, asset in self._found.items():
            digest.update(f"{name}\n{len(asset.content)}\n".encode() + asset.content)
        self.version = digest.hexdigest()[:12]

    def address(self, name: str) -> str:
        """Return where a file is; a template that names a missing one does not render."""
        if name not in self._found:
            raise LookupError(f"there is no file {name!r} under static.")
        return f"/assets/{self.version}/{name}"

    def find(self, version: str, name: str) -> Asset | None:
        """Return a file, if there is one of this name and version."""
        return self._found.get(name) if version == self.version else None

    def __iter__(self) -> Iterator[tuple[str, Asset]]:
        return iter(self._found.items())


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        elif media_type := _MEDIA_TYPES.get(entry.name.rpartition(".")[2]):
            found.append((name, Asset(media_type=media_type, content=entry.read_bytes())))
    return found
