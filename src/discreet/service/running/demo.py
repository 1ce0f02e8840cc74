"""A gateway to look at: generated salaries and people, three logins, and nothing to install."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from discreet.datasets import census, salaries
from discreet.ledger import Ledger
from discreet.privacy import Guarantee
from discreet.service.identity.api_keys import create
from discreet.service.identity.login import Role
from discreet.service.records.records import Records
from discreet.tables import protect

__all__ = ["Demo", "make_demo"]

_PEOPLE: Final = 20_000
_ROLES: Final = {
    "ana": [Role.ANALYST],
    "chris": [Role.CUSTODIAN],
    "audrey": [Role.AUDITOR],
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """Where the demo is set up, and the keys of its logins by name.

    >>> Demo(config=Path("gateway.toml"), keys={"ana": "dk_..."})
    Demo(config=PosixPath('gateway.toml'))
    """

    config: Path
    keys: dict[str, str] = field(repr=False)


def make_demo(folder: Path) -> Demo:
    """Write a demo into an empty folder: data, declarations, ledger, records and settings.

    A hundred salaries with a total epsilon of 5, and a census-like table with 3.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     sorted(make_demo(Path(place)).keys)
    ['ana', 'audrey', 'chris']
    """
    import pyarrow as pa
    from pyarrow import parquet

    data = folder / "data"
    data.mkdir()
    parquet.write_table(pa.table(salaries(100)), data / "salaries.parquet")
    parquet.write_table(pa.table(census(_PEOPLE)), data / "people.parquet")
    with Ledger.open(folder / "budget.db") as ledger:
        _protect_both(data, ledger, folder)
    config = folder / "gateway.toml"
    config.write_text(
        'ledger = "budget.db"\ndatasets = ["salaries.toml", "people.toml"]\ndata = "data"\n'
        "answer_after = 1.0\nexplorer = true\n"
    )
    with Records.open(f"{folder / 'budget.db'}.gateway") as records:
        keys = {who: create(records, who=who, roles=roles)[1] for who, roles in _ROLES.items()}
    return Demo(config=config, keys=keys)


def _protect_both(data: Path, ledger: Ledger, folder: Path) -> None:
    """Protect the two tables; all bounds were chosen without a look at the data."""
    with protect(
        data / "salaries.parquet",
        name="salaries",
        unit="employee_id",
        rows=1,
        size=100,
        guarantee=Guarantee(epsilon=5, delta=1e-6),
        policy="degrade",
        ledger=ledger,
        columns={"salary": {"bounds": (0, 150_000)}, "years": {"bounds": (0, 50)}},
    ) as tables:
        tables.save(folder / "salaries.toml")
    with protect(
        data / "people.parquet",
        name="people",
        unit="person_id",
        rows=1,
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        ledger=ledger,
        columns={"income": {"bounds": (0, 100_000)}, "age": {"bounds": (0, 100)}},
    ) as tables:
        tables.save(folder / "people.toml")
