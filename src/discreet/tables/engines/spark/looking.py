"""What Spark takes for a table: a DataFrame, a table of the catalogue, or Parquet files."""

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final
from urllib.parse import unquote, urlparse

from discreet.errors import DataError
from discreet.tables.engines.spark.columns import COARSE, declared
from discreet.tables.engines.spark.session import own_session, quietly
from discreet.tables.sources.files import expand, fingerprint, format_of, inodes
from discreet.tables.sources.names import columns_checked
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkReading", "frame_of", "look", "reading_of", "version"]

_HINT: Final = (
    "Give a DataFrame of this Spark session, a table's name in its catalogue, or a path of Parquet "
    "files."
)
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_MOST_FILES: Final = 10_000  # of a table, by which it is known besides its name


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparkReading:
    """What Spark reads a table from, and the types that its columns have there."""

    given: "DataFrame | str"  # a frame, a table's full name, or paths as one text each
    how: Literal["frame", "table", "files"]
    paths: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()


def reading_of(source: DataSource) -> SparkReading:
    """Return what :func:`look` kept for this engine."""
    if not isinstance(source.reading, SparkReading):
        raise DataError(f"table {source.name!r} was opened for another engine.")
    return source.reading


def frame_of(reading: SparkReading, session: "SparkSession") -> "DataFrame":
    """Return what a table is read from, in our session; a frame is the user's."""
    if reading.how == "frame":
        return reading.given  # type: ignore[return-value]
    if reading.how == "table":
        return session.table(str(reading.given))
    if not any(kind in COARSE for _, kind in reading.kinds):
        return session.read.parquet(*reading.paths)
    # As whole numbers: Spark would multiply them, and fail where one is too large for that.
    parts = [(column, "bigint" if kind in COARSE else kind) for column, kind in reading.kinds]
    schema = ", ".join("`" + column.replace("`", "``") + f"` {kind}" for column, kind in parts)
    return session.read.schema(schema).parquet(*reading.paths)


def look(spark: "SparkSession", name: str, given: object, *, is_public: bool) -> DataSource:
    """Look at a table without reading its rows."""
    found: DataSource | str
    try:
        with quietly():
            found = _looked(spark, name, given, is_public=is_public)
    except DataError:
        raise
    except Exception as error:  # of Spark, of the catalogue, of the disk
        found = type(error).__name__
    if isinstance(found, str):  # raised out here, it has no __context__
        raise DataError(f"table {name!r}: Spark cannot read it ({found}). {_HINT}")
    columns_checked(name, [column for column, _ in found.columns])
    return found


def _looked(spark: "SparkSession", name: str, given: object, *, is_public: bool) -> DataSource:
    session = own_session(spark)
    if hasattr(given, "createGlobalTempView") and hasattr(given, "inputFiles"):
        reading = SparkReading(given=given, how="frame")  # type: ignore[arg-type]
        _check_steady(name, given)
        return _source(name, given, reading, given, is_public=is_public)
    if isinstance(given, os.PathLike) or (isinstance(given, str) and _is_path(given)):
        return _files(session, name, given, is_public=is_public)
    if isinstance(given, list | tuple) and all(isinstance(one, str | os.PathLike) for one in given):
        return _files(session, name, given, is_public=is_public)
    if not isinstance(given, str):
        raise DataError(f"table {name!r}: Spark has no use for {type(given).__name__}. {_HINT}")
    # A name is looked up where the user stands, and written in full: our session stands elsewhere.
    table = spark.catalog.getTable(given)
    if table.isTemporary:
        frame = spark.table(given)
        _check_steady(name, frame)
        return _source(
            name, given, SparkReading(given=frame, how="frame"), frame, is_public=is_public
        )
    if table.tableType == "VIEW" and not is_public:
        raise DataError(
            f"table {name!r}: {given!r} is a view, whose rows may depend on several people. "
            "Protect the tables that it is made of; or give it as a DataFrame, spark.table(...), "
            "if each of its rows comes from one person's rows alone."
        )
    parts = (table.catalog, *(table.namespace or ()), table.name)
    full = ".".join("`" + part.replace("`", "``") + "`" for part in parts if part)
    reading = SparkReading(given=full, how="table")
    frame = session.table(full)
    return _source(name, given, reading, frame, is_public=is_public, full=full)


def _is_path(given: str) -> bool:
    is_file = given.lower().endswith((".parquet", ".pq")) or os.sep in given
    return bool(_URI.match(given)) or is_file or Path(given).expanduser().is_dir()


def _check_steady(name: str, frame: Any) -> None:
    """Refuse a frame that is made anew, and differently, each time that it is read."""
    plan = getattr(frame, "_jdf", None)  # where Spark runs in this process; Connect does not tell
    if plan is None:
        return
    is_steady = True
    with suppress(Exception):
        is_steady = bool(plan.queryExecution().analyzed().deterministic())
    if not is_steady:
        raise DataError(
            f"table {name!r}: the DataFrame is made with random numbers or the like, so that its "
            "rows differ from one reading to the next, and no person's influence is bounded. Write "
            "it to files, and protect these."
        )


def _files(session: "SparkSession", name: str, given: Any, *, is_public: bool) -> DataSource:
    items = [os.fspath(one) for one in (given if isinstance(given, list | tuple) else [given])]
    several = isinstance(given, list | tuple)
    location: Any = tuple(items) if several else items[0]
    far = [one for one in items if _URI.match(one) and not one.startswith("file:")]
    if far:
        reading = SparkReading(given=items[0], how="files", paths=tuple(items))
        frame = session.read.parquet(*items)
        return _source(name, given, reading, frame, is_public=is_public, location=location)
    near = [_local(one) or one for one in items]
    paths = expand(near, name=name) or ()
    if format_of(paths, name=name) != "parquet":
        raise DataError(f"table {name!r}: Spark reads Parquet files here. {_HINT}")
    places = tuple(str(Path(one).expanduser().absolute()) for one in near)
    # Folders are handed over as they are, so that names of folders may be columns.
    reading = SparkReading(given=places[0], how="files", paths=_read(places, paths))
    frame = session.read.parquet(*reading.paths)
    return _source(name, given, reading, frame, is_public=is_public, location=location, paths=paths)


def _read(places: Sequence[str], paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(places) if all(Path(one).exists() for one in places) else paths


def _source(
    name: str,
    given: object,
    reading: SparkReading,
    frame: Any,
    *,
    is_public: bool,
    full: str | None = None,
    location: str | tuple[str, ...] | None = None,
    paths: tuple[str, ...] = (),
) -> DataSource:
    files = paths or _files_of(frame)
    near = [path for path in files if os.path.isabs(path)]
    kinds = _kinds(name, frame, near, can_read=bool(paths))
    identities = [f"spark:{full}"] if full else []
    identities += near[:_MOST_FILES] if near else list(files[:_MOST_FILES])
    if not identities:
        identities = [f"spark-frame:{frame.semanticHash()}"]
    elif location is not None and not near:
        identities += [location] if isinstance(location, str) else list(location)
    return DataSource(
        name=name,
        kind=reading.how,
        columns=tuple((column, declared(kind)) for column, kind in kinds),
        version=_version(files, kinds, frame),
        identities=tuple(dict.fromkeys(identities)),
        location=location if location is not None else (full and str(given)),
        is_public=is_public,
        places=tuple(inodes(near)),
        given=given,
        reading=SparkReading(
            given=reading.given, how=reading.how, paths=reading.paths, kinds=kinds
        ),
    )


def _kinds(
    name: str, frame: Any, near: Sequence[str], *, can_read: bool
) -> tuple[tuple[str, str], ...]:
    """Return the types of all columns, and which of them are timestamps in milliseconds.

    These are read in our own way, or refused where they are read already: see ``frame_of``.
    """
    import pyarrow.parquet as pq

    found = {str(column): str(kind) for column, kind in frame.dtypes}
    moments = {column: kind for column, kind in found.items() if kind.startswith("timestamp")}
    for path in near if moments else ():
        if not path.endswith((".parquet", ".pq")):
            continue
        for field in pq.read_schema(path):
            if field.name in moments and str(field.type).startswith("timestamp[ms"):
                if not can_read:
                    raise DataError(
                        f"table {name!r}: column {field.name!r} has timestamps in milliseconds, at "
                        "which Spark fails if one is out of range. Give the path of the files."
                    )
                found[field.name] = COARSE[moments[field.name] == "timestamp"]
    return tuple(found.items())


def version(spark: "SparkSession", source: DataSource) -> str:
    """Return the version that a table has now."""
    reading = reading_of(source)
    found: str | None = None
    try:
        with quietly():
            if reading.how == "files" and all(os.path.isabs(one) for one in reading.paths):
                near = [_local(one) or one for one in _items(source.given)]
                files = expand(near, name=source.name) or ()
                found = _version(files, reading.kinds, None)
            else:
                is_ours = reading.how == "frame"  # then it belongs to the user's session
                frame = frame_of(reading, spark if is_ours else own_session(spark))
                kinds = tuple((str(column), str(kind)) for column, kind in frame.dtypes)
                found = _version(_files_of(frame), kinds, frame)
    except DataError:
        raise
    except Exception:
        found = None
    if found is None:
        raise DataError(f"table {source.name!r} can no longer be read. Restore it.")
    return found


def _items(given: Any) -> list[str]:
    return [os.fspath(one) for one in (given if isinstance(given, list | tuple) else [given])]


def _version(files: Sequence[str], kinds: Sequence[tuple[str, str]], frame: Any) -> str:
    """Digest the files that are read: local ones by sizes, times and footers, others by name."""
    near = [path for path in files if os.path.isabs(path)]
    if files and len(near) == len(files):
        is_parquet = all(path.endswith((".parquet", ".pq")) for path in files)
        return fingerprint(files, files, with_footers=is_parquet)
    digest = hashlib.sha256(repr(sorted(kinds)).encode())
    for path in sorted(files):
        digest.update(f"\0{path}".encode())
    if not files:
        digest.update(str(frame.semanticHash()).encode())
    return digest.hexdigest()


def _files_of(frame: Any) -> tuple[str, ...]:
    """Return the files that a frame reads: local ones as paths, others as they are named."""
    found = [_local(one) or one for one in frame.inputFiles()]
    return tuple(sorted(os.path.realpath(one) if os.path.isabs(one) else one for one in found))


def _local(path: str) -> str | None:
    """Return the path that a URI of a local file stands for."""
    parsed = urlparse(path)
    return unquote(parsed.path) if parsed.scheme == "file" else None
