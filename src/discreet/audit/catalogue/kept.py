"""The figures of one run of the catalogue, kept in the package: pages and docs show these."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Final, final

from discreet._json import read_json
from discreet._version import __version__
from discreet.audit.catalogue.report import CatalogueReport

__all__ = ["KeptCatalogue", "kept_catalogue"]

_COMMAND: Final = "discreet audit all --write src/discreet/audit/catalogue/kept.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCatalogue:
    """Hold a report with the day, the version and the command that it is from.

    >>> kept_catalogue().report.passed
    True
    """

    report: CatalogueReport
    day: str
    version: str
    command: str

    @classmethod
    def of(cls, report: CatalogueReport) -> "KeptCatalogue":
        """Return what is kept of a run that has just ended.

        >>> run = CatalogueReport(lines=(), false_alarm=1e-6, seconds=0)
        >>> KeptCatalogue.of(run).version == __version__
        True
        """
        today = datetime.now(UTC).date().isoformat()
        return cls(report=report, day=today, version=__version__, command=_COMMAND)

    def to_json(self) -> str:
        """Return the text of the file.

        >>> kept = kept_catalogue()
        >>> '"command": "discreet audit all' in kept.to_json()
        True
        """
        facts = {"command": self.command, "day": self.day, "version": self.version}
        return json.dumps(facts | self.report.to_dict(), indent=1, allow_nan=False) + "\n"


def kept_catalogue() -> KeptCatalogue:
    """Return the figures that this version was released with.

    >>> len(kept_catalogue().report.lines) > 40
    True
    """
    text = files("discreet.audit.catalogue").joinpath("kept.json").read_text(encoding="utf-8")
    told = read_json(text)
    return KeptCatalogue(
        report=CatalogueReport.from_dict(told),
        day=told["day"],
        version=told["version"],
        command=told["command"],
    )
