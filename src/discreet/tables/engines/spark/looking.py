"""What Spark takes for a table: a DataFrame, a table of the catalogue, or Parquet files."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final
from urllib.parse import unquote, urlparse

from discreet.errors import DataError
from discreet.tables.engines.spark.columns import COARSE, declared
from discreet.tables.engines.spark.footers import footer, is_parquet
from discreet.tables.engines.spark.plans import check_plan
from discreet.tables.engines.spark.session import own_session, quietly
from discreet.tables.sources.files import expand, fingerprint, format_of, inodes
from discreet.tables.sources.names import TABLE, columns_checked
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
    are_alike: bool = False  # all files have the same types, which was looked up


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
        check_plan(name, given, is_public=is_public)
        return _source(name, given, reading, given, is_public=is_public)
    if isinstance(given, os.PathLike) or (isinstance(given, str) and _is_path(given)):
        return _files(session, name, given, is_public=is_public)
    if isinstance(given, list | tuple) and all(isinstance(one, str | os.PathLike) for one in given):
        return _files(session, name, given, is_public=is_public)
    if not isinstance(given, str):
        raise DataError(f"table {name!r}: Spark has no use for {type(given).__name__}. {_HINT}")
    # A name is looked up where the user stands, and written in full: our session stands elsewhere.
    said = given.removeprefix(TABLE)
    table = spark.catalog.getTable(said)
    if table.isTemporary:
        frame = spark.table(said)
        check_plan(name, frame, is_public=is_public)
        return _source(
            name, given, SparkReading(given=frame, how="frame"), frame, is_public=is_public
        )
    if table.tableType == "VIEW" and not is_public:
        raise DataError(
            f"table {name!r}: {said!r} is a view, whose rows may depend on several people. "
            "Protect the tables that it is made of; or give it as a DataFrame, spark.table(...), "
            "if each of its rows comes from one person's rows alone."
        )
    parts = (table.catalog, *(table.namespace or ()), table.name)
    full = ".".join("`" + part.replace("`", "``") + "`" for part in parts if part)
    reading = SparkReading(given=full, how="table")
    frame = session.table(full)
    if not is_public:
        check_plan(name, frame, is_public=is_public)
    return _source(name, given, reading, frame, is_public=is_public, full=full)


def _is_path(given: str) -> bool:
    if given.startswith(TABLE):
        return False
    is_file = given.lower().endswith((".parquet", ".pq")) or os.sep in given
    return bool(_URI.match(given)) or is_file or Path(given).expanduser().is_dir()


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
    are_alike = bool(files) and len(near) == len(files) and all(map(is_parquet, files))
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
        location=location if location is not None else (full and TABLE + full),
        is_public=is_public,
        places=tuple(inodes(near)),
        given=given,
        reading=replace(reading, kinds=kinds, are_alike=are_alike),
    )


def _kinds(
    name: str, frame: Any, near: Sequence[str], *, can_read: bool
) -> tuple[tuple[str, str], ...]:
    """Return the types of all columns, and which of them are timestamps in milliseconds.

    These are read in our own way, or refused where they are read already: see ``frame_of``. Files
    of which one has another type of a column are refused: Spark fails when it comes to that file,
    and whether it does depends on what else is in the file's rows.
    """
    found = {str(column): str(kind) for column, kind in frame.dtypes}
    seen: dict[str, str] = {}
    for path in near:
        for column, kind in footer(path).items() if is_parquet(path) else ():
            if seen.setdefault(column, kind) != kind and column in found:
                raise DataError(
                    f"table {name!r}: column {column!r} is not of the same type in all files. "
                    "Write them alike, or protect them as tables of their own."
                )
            if "milliseconds" in kind and found.get(column, "").startswith("timestamp"):
                if not can_read:
                    raise DataError(
                        f"table {name!r}: column {column!r} has timestamps in milliseconds, at "
                        "which Spark fails if one is out of range. Give the path of the files."
                    )
                found[column] = COARSE[found[column] in ("timestamp", COARSE[1])]
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
        return fingerprint(files, files, with_footers=all(map(is_parquet, files)))
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
