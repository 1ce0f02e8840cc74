"""Say what is missing, before anything that talks over a network is imported."""

from importlib.util import find_spec

from discreet.errors import MissingExtra

__all__: list[str] = []

for _needed in ("httpx", "starlette", "uvicorn"):
    if find_spec(_needed) is None:
        raise MissingExtra(room="discreet.shuffle.running", needs=_needed, extra="serve")
