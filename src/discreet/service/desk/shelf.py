"""The datasets that a gateway serves: protected tables on one ledger, opened by name."""

import json
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import final

from discreet.errors import (
    AccountNotFound,
    DiscreetError,
    LedgerUnavailable,
    ParameterError,
)
from discreet.ledger import Ledger
from discreet.service.desk.data_folder import DataFolder
from discreet.service.records.declarations import add_declaration, find_declarations
from discreet.service.records.records import Records
from discreet.service.settings.gateway import GatewaySettings
from discreet.tables import (
    Declaration,
    Protected,
    Resources,
    load,
    open_tables,
    rehearse_tables,
)

__all__ = ["Served", "Shelf"]

_logger = logging.getLogger("discreet.service")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Protected tables, and after how many seconds one release of them is told."""

    tables: Protected
    seconds: float


@final
class Shelf:
    """All that is served, on one ledger. Threads may share it."""

    def __init__(self, ledger: Ledger, settings: GatewaySettings, records: Records) -> None:
        self.ledger = ledger
        self.folder = DataFolder(settings.data)
        self._settings, self._records = settings, records
        self._served: dict[str, Served] = {}
        self._unserved: dict[str, str] = {}
        self._lock = Lock()

    @classmethod
    def open(cls, settings: GatewaySettings, records: Records) -> "Shelf":
        """Open the ledger and all datasets that the settings name, or nothing.

        What custodians registered since is opened if it can be: :attr:`unserved` is the rest.
        """
        with ExitStack() as stack:
            ledger = stack.enter_context(
                Ledger.open(settings.ledger, key=settings.ledger_key, create=not _is_told(settings))
            )
            shelf = cls(ledger, settings, records)
            stack.callback(shelf._close_tables)
            for path in settings.datasets:
                shelf.add(path)
            shelf.catch_up(on_error=_unless_outage)
            unknown = sorted(set(settings.answers_after) - set(shelf.names) - set(shelf.unserved))
            if unknown:
                raise ParameterError(
                    f"answers_after speaks of {unknown[0]!r}, which is not served.",
                    parameter="answers_after",
                )
            stack.pop_all()
            return shelf

    def add(self, path: Path, sources: Mapping[str, object] | None = None) -> Served:
        """Open a declaration and serve it from now on."""
        tables = open_tables(
            path, ledger=self.ledger, sources=sources, resources=self._limits(load(path))
        )
        return self.put(tables)

    def register(self, text: str, *, who: str) -> str:
        """Protect what a custodian declares, serve it, and let the other workers know."""
        with _written(text) as path:
            declaration = self._new(path)
            served = self.add(path, self.folder.sources(declaration))
        account = served.tables.account.name
        try:
            self.ledger.act(
                "dataset.registered", who=who, subject=declaration.name, account=account
            )
            add_declaration(self._records, declaration.name, text, who=who)
        except BaseException:
            self._withdraw(served)  # or this worker alone would serve it, until it ends
            raise
        return served.tables.name

    @contextmanager
    def rehearsed(self, text: str, *, who: str) -> Iterator[Protected]:
        """Refuse what :meth:`register` would refuse; give the tables on a ledger that ends here."""
        with _written(text) as path:
            declaration = self._new(path)
            with rehearse_tables(
                path,
                ledger=self.ledger,
                sources=self.folder.sources(declaration),
                who=who,
                resources=self._limits(declaration),
            ) as tables:
                yield tables

    def _new(self, path: Path) -> Declaration:
        declaration = load(path)
        if declaration.name in self._served:
            raise ParameterError(
                f"a dataset {declaration.name!r} is served already.", parameter="name"
            )
        return declaration

    def _limits(self, declaration: Declaration) -> Resources:
        limits = declaration.resources
        memory = self._settings.memory
        return limits if memory is None else replace(limits, memory=memory)

    def catch_up(self, *, on_error: Callable[[Exception], None] | None = None) -> None:
        """Serve what was registered with other workers meanwhile.

        What cannot be served keeps nothing else from being served where ``on_error`` is given. It
        is called once, until something else is wrong.
        """
        for name, text in find_declarations(self._records).items():
            if name in self._served:
                continue
            try:
                with _written(text) as path:
                    self.add(path, self.folder.sources(load(path)))
                self._unserved.pop(name, None)
            except Exception as error:
                if on_error is None:
                    raise
                before, self._unserved[name] = self._unserved.get(name), str(error)
                if before != str(error):
                    on_error(error)

    def put(self, tables: Protected) -> Served:
        """Serve tables that are open."""
        served = Served(tables=tables, seconds=self._settings.seconds_of(tables.name))
        with self._lock:
            if tables.name in self._served:
                tables.close()
                raise ParameterError(
                    f"a dataset {tables.name!r} is served already.", parameter="datasets"
                )
            self._served[tables.name] = served
        return served

    def _withdraw(self, served: Served) -> None:
        with self._lock:
            del self._served[served.tables.name]
        served.tables.close()

    @property
    def unserved(self) -> dict[str, str]:
        """What was registered and cannot be served, with the reasons."""
        return dict(self._unserved)

    @property
    def names(self) -> list[str]:
        """The names of all datasets, sorted."""
        return sorted(self._served)

    def __getitem__(self, name: str) -> Served:
        try:
            return self._served[name]
        except KeyError:
            raise AccountNotFound(
                "there is no dataset of this name that this login may see."
            ) from None

    def __iter__(self) -> Iterator[Served]:
        return iter(list(self._served.values()))

    def close(self) -> None:
        """Close all tables and the ledger."""
        self._close_tables()
        self.ledger.close()

    def _close_tables(self) -> None:
        for one in self:
            one.tables.close()


@contextmanager
def _written(text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "declaration.toml"
        path.write_text(text, encoding="utf-8")
        yield path


def _unless_outage(error: Exception) -> None:
    """Go on without a dataset, and tell the custodian; without the ledger nobody can go on."""
    if not isinstance(error, DiscreetError) or isinstance(error, LedgerUnavailable):
        raise error
    _logger.error(json.dumps({"event": "unreadable", "why": str(error)}, sort_keys=True))


def _is_told(settings: GatewaySettings) -> bool:
    """Whether the ledger is to be there: a mistyped address must not begin new budgets."""
    return bool(settings.datasets or settings.collections)
