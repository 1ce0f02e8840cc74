"""What computes a DataFrame, where Spark tells: refused if it ties people's rows together."""

from typing import Any, Final

from discreet.errors import DataError

__all__ = ["check_plan"]

# Which rows are left depends on all others, and on their order.
_CUTS: Final = {
    "GlobalLimit": "limit", "LocalLimit": "limit", "Offset": "offset", "Tail": "tail",
    "Sample": "sample",
}  # fmt: skip
_TEXT_FILES: Final = ("csv", "json", "xml")


def check_plan(name: str, frame: Any, *, is_public: bool) -> None:
    """Refuse a frame in which one person's rows decide about another's, or about failing.

    Spark Connect does not tell, and much looks harmless that is not: see
    :class:`discreet.tables.engines.SparkEngine` for what the custodian answers for.
    """
    inner = getattr(frame, "_jdf", None)  # where Spark runs in this process
    if inner is None:
        return
    plan = inner.queryExecution().analyzed()
    if not plan.deterministic():
        raise DataError(
            f"table {name!r}: the DataFrame is made with random numbers or the like, so that its "
            "rows differ from one reading to the next, and no person's influence is bounded. Write "
            "it to files, and protect these."
        )
    cut, text_file = _found(plan)
    if cut is not None:
        raise DataError(
            f"table {name!r}: the DataFrame is made with {cut}, so that one person's rows decide "
            "which rows of others are there. Give the frame without it, or write its rows to files "
            "once, and protect these."
        )
    if text_file is not None and not is_public:
        raise DataError(
            f"table {name!r}: Spark reads {text_file} here, where a row can swallow those after "
            "it, or make the question fail. Write it to Parquet files, and protect these."
        )


def _found(plan: Any) -> tuple[str | None, str | None]:
    """Return what of a plan cuts rows off, and what text files it reads, if any."""
    cut = text_file = None
    left = [plan]
    while left:
        node = left.pop()
        kind = node.getClass().getSimpleName()
        if kind in _CUTS:
            cut = _CUTS[kind]
        elif kind == "Window" and node.partitionSpec().isEmpty():
            cut = "a window over everybody"
        text_file = _text_file(node) or text_file
        for several in (node.children(), node.subqueries()):
            left += [several.apply(place) for place in range(several.length())]
    return cut, text_file


def _text_file(node: Any) -> str | None:
    """Return in which format of texts a leaf of a plan is read, if in one."""
    kind = node.getClass().getSimpleName()
    made: Any = None
    if kind.startswith("LogicalRelation"):
        made = node.relation()
        made = made.fileFormat() if made.getClass().getSimpleName() == "HadoopFsRelation" else made
    elif kind.startswith("DataSourceV2"):
        made = node.table()
    if made is None:
        return None
    of = made.getClass().getSimpleName().lower()
    return next((f"{one.upper()} files" for one in _TEXT_FILES if of.startswith(one)), None)
