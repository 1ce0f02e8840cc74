"""A process that knows nothing but public metadata, and answers questions about it.

Analysts write what they like here. Whatever they find out to do to the database, it happens in a
process that has no data, no ledger and no keys, whose memory is limited, and that is ended when it
takes too long.
"""

import json
import resource
import sys
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from discreet._json import read_json
from discreet.service.wire.catalogue.database import ask, filled_database
from discreet.service.wire.catalogue.metadata import DatasetMetadata

if TYPE_CHECKING:
    import duckdb

__all__ = ["read_frame", "serve_clerk", "write_frame"]

_MOST_DATABASES: Final = 8
_MEMORY: Final = 2 * 2**30  # bytes of address space; what is used is far less


def serve_clerk(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer questions until there are no more: frames of JSON, one for one."""
    kept: OrderedDict[str, duckdb.DuckDBPyConnection] = OrderedDict()
    while (asked := read_frame(source)) is not None:
        write_frame(sink, _answer(kept, asked))


def _answer(
    kept: "OrderedDict[str, duckdb.DuckDBPyConnection]", asked: dict[str, Any]
) -> dict[str, Any]:
    try:
        key = json.dumps(asked["shown"], sort_keys=True)
        if key not in kept:
            kept[key] = filled_database(DatasetMetadata(**asked["shown"]))
        kept.move_to_end(key)
        while len(kept) > _MOST_DATABASES:
            kept.popitem(last=False)[1].close()
        columns, rows = ask(kept[key], asked["sql"], most=asked["most"])
        return {"columns": columns, "rows": [[_shown(v) for v in row] for row in rows]}
    except Exception as error:  # whatever the database raises
        kept.clear()  # an error inside may leave one unusable
        return {"failure": type(error).__name__}


def _shown(value: object) -> object:
    """Return a value as JSON has it: times as texts, lists as PostgreSQL writes them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return "{" + ",".join("NULL" if one is None else str(_shown(one)) for one in value) + "}"
    return str(value)


def read_frame(source: BinaryIO) -> dict[str, Any] | None:
    """Read one frame, None at the end."""
    head = source.read(4)
    if len(head) < 4:
        return None
    found: dict[str, Any] = read_json(source.read(int.from_bytes(head, "big")))
    return found


def write_frame(sink: BinaryIO, told: dict[str, Any]) -> None:
    """Write one frame."""
    body = json.dumps(told).encode()
    sink.write(len(body).to_bytes(4, "big") + body)
    sink.flush()


def main() -> None:
    """Run as a process of its own."""
    with suppress(ValueError, OSError):  # where the system's own limit is lower already
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(KeyboardInterrupt, BrokenPipeError):
        serve_clerk(sys.stdin.buffer, sys.stdout.buffer)
