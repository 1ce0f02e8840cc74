"""Everything that protecting does, on a ledger that is thrown away: a trial before the fact."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from discreet.ledger import Ledger
from discreet.tables.declarations.reading import load
from discreet.tables.declarations.registration import recalled, rehearsed
from discreet.tables.engines.named import engine_named
from discreet.tables.engines.protocol import limited
from discreet.tables.engines.sources import open_sources
from discreet.tables.model.resources import Resources
from discreet.tables.protected import Protected

__all__ = ["rehearse_tables"]


@contextmanager
def rehearse_tables(
    path: "str | PathLike[str]",
    *,
    ledger: Ledger,
    sources: Mapping[str, object],
    who: str | None = None,
    override: str | None = None,
    resources: Resources | None = None,
) -> Iterator[Protected]:
    """Refuse what :func:`open_tables` would refuse, and write nothing.

    Gives the tables with a budget that nobody has drawn on, in a ledger that ends with the block:
    whoever wants to know what questions would cost, and which are refused, may ask for quotes.

    >>> from discreet.testing import temporary_ledger
    >>> with temporary_ledger() as ledger:
    ...     with rehearse_tables("nowhere.toml", ledger=ledger, sources={}):
    ...         pass
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: nowhere.toml: there is no such file.
    """
    declaration = load(Path(fspath(path)))
    declaration = replace(declaration, resources=resources or declaration.resources)
    opened = open_sources(
        {table: sources[table] for table in declaration.tables},
        public={table: sources[table] for table in declaration.public},
        types=declaration.types,
        engine=limited(engine_named(declaration.engine), declaration.resources),
    )
    opened = recalled(ledger, declaration, opened)
    declaration = declaration.pinned(opened)
    catalog = declaration.catalog(opened.columns)
    with ExitStack() as stack:
        connection = opened.connected()
        stack.callback(connection.close)
        rehearsed(ledger, declaration, opened, connection, override=override, who=who)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        trial = stack.enter_context(Ledger.open(Path(folder) / "trial.db"))
        account = trial.create(
            declaration.account or declaration.name,
            unit=declaration.unit,
            neighbours=declaration.neighbours,
            guarantee=declaration.guarantee,
            policy=declaration.policy or "deny",
        )
        yield Protected(
            declaration, catalog, opened, account, connection,
            who=who, purpose="rehearsal", owns_ledger=False,
        )  # fmt: skip
