"""Say what is missing, before anything else in this room is imported."""

from importlib.util import find_spec

from discreet.errors import MissingExtra

for _needed in ("jinja2", "pydantic", "starlette", "uvicorn", "jwt", "prometheus_client"):
    if find_spec(_needed) is None:
        raise MissingExtra(room="discreet.service", needs=_needed, extra="serve")
