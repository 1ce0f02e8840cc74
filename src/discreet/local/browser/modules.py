"""The files that a collector serves to browsers."""

from importlib import resources
from typing import Final

from discreet._exact import refusal

__all__ = ["MODULES", "read_module"]

# The minified one holds both sources; `make browser` makes it.
MODULES: Final = ("discreet-local.js", "discreet-local.min.js", "discreet-seal.js")


def read_module(name: str = "discreet-local.min.js") -> bytes:
    """Return one of the ES modules ``MODULES``, to be served as text/javascript.

    >>> b"openCollection" in read_module()
    True
    """
    if name not in MODULES:
        raise refusal("name", f"one of {', '.join(MODULES)}", name)
    return (resources.files(__package__) / name).read_bytes()
