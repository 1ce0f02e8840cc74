"""From a protected table to rows to learn from, by what its declaration makes public."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from discreet._exact import Number, positive
from discreet.cli.numbers import parse
from discreet.cli.tables import opening
from discreet.cli.train.evaluations import Evaluation, OnPrivate, OnPublic
from discreet.cli.train.request import TrainRequest, train_and_tell, whole_number
from discreet.cli.train.runs import Experiment
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.learn.recipes import Choice, EncodedRows, Encoding, Scaled
    from discreet.tables import Column, Protected

__all__ = ["TableRows", "train_on_table"]

APART: Final = Fraction(1, 10)  # the share of units that a private evaluation keeps out of training
MOST_ROWS: Final = 16  # of one unit in a batch, unless more are asked for


def train_on_table(
    request: TrainRequest,
    name: str,
    *,
    model: str,
    target: str,
    features: str | None,
    unit: str | None,
    rows_per_unit: str | None,
    table: str | None,
    held_out: str | None,
    evaluate_epsilon: str | None,
) -> None:
    """Do what ``discreet train table`` was asked for."""
    price = None if evaluate_epsilon is None else parse(evaluate_epsilon)
    if price is not None:
        positive(price, name="evaluate_epsilon")
    if held_out is not None and price is not None:
        raise ParameterError(
            "judge by --held-out or by --evaluate-epsilon, not by both.",
            parameter="evaluate_epsilon",
        )
    request.require_judge(
        held_out is not None or price is not None,
        remedy="--held-out FILE, rows that are public, or --evaluate-epsilon E, which is paid",
    )
    request.refuse_twin(f"the protected table {name!r}")
    with _protected(name, who=request.who, purpose=request.purpose) as protected:
        source = TableRows(
            protected, table=table, target=target, features=_names(features), unit=unit
        )
        size = whole_number(request.population, "population") or protected.catalog.size
        experiment = request.experiment(
            model,
            classes=source.encoding.classes,
            account=protected.account,
            who=protected._who,
            population=size if price is None or size is None else max(1, size - int(size * APART)),
            unit=source.unit,
            rows_per_unit=whole_number(rows_per_unit, "rows_per_unit") or source.rows_per_unit,
        )
        evaluation: Evaluation | None = None
        if held_out is not None:
            evaluation = OnPublic(
                rows=source.public_rows(held_out), words=f"{held_out}, which was declared public"
            )
        rows = source.rows()
        if price is not None:
            rows, evaluation = _set_apart(rows, experiment, price)
        on = f"{source.encoding.target.name} of {source.table}"
        train_and_tell(request, experiment, rows, evaluation, on=on, encoding=source.encoding)


def _set_apart(
    rows: "EncodedRows", experiment: Experiment, price: Number
) -> tuple["EncodedRows", OnPrivate]:
    """Keep a tenth of the units apart, to judge models on them."""
    from discreet.learn.recipes import PrivateAccuracy, set_apart

    account, training = experiment.account, experiment.training
    assert account is not None
    mechanism = PrivateAccuracy(epsilon=price, neighbours=account.neighbours)
    rest, apart = set_apart(rows, share=APART)
    purpose = f"{training['purpose']}: evaluation"
    return rest, OnPrivate(apart, mechanism, account, who=training["who"], purpose=purpose)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [one.strip() for one in text.split(",") if one.strip()]


@contextmanager
def _protected(name: str, *, who: str | None, purpose: str) -> "Iterator[Protected]":
    """Open a protected table, or say how to protect a file."""
    path = Path(name)
    if path.is_file() and path.suffix != ".toml":
        raise ParameterError(
            f"{name} is data, not a protected table. Nothing was read. Protect it first: discreet "
            f"protect {name} --name {path.stem} --unit COLUMN --epsilon E --delta D; then declare "
            f"bounds and keys in {path.stem}.toml, and train on {path.stem}.",
            parameter="name",
        )
    with opening.opened(name, who=who, purpose=purpose) as protected:
        yield protected


@final
class TableRows:
    """The rows of one protected table: which columns, how they become numbers, whose they are."""

    def __init__(
        self,
        protected: "Protected",
        *,
        table: str | None,
        target: str,
        features: Sequence[str] | None,
        unit: str | None,
    ) -> None:
        self._protected = protected
        self._file = f"{protected.name}.toml"
        self.table = protected.table(table).table
        facts = next(one for one in protected.catalog.tables if one.name == self.table)
        self._columns = {column.name.casefold(): column for column in facts.columns}
        self.unit = self._unit(unit)
        self.encoding = self._encoding(target, features)

    def rows(self) -> "EncodedRows":
        """Read the private rows, for training and nothing else."""
        from discreet.tables.rows import UNIT, read_rows

        columns = read_rows(self._protected, self.encoding.columns, table=self.table)
        encoded = columns.map(lambda found: self.encoding.encode(found, units=found.get(UNIT)))
        return encoded.reveal_without_noise()  # training adds the noise, to every step

    def public_rows(self, place: str) -> "EncodedRows":
        """Read rows of a file that is declared public."""
        from discreet.tables.rows import read_public

        columns = self.encoding.columns
        found = read_public(self._protected, columns, table=self.table, place=place)
        return self.encoding.encode(found)

    @property
    def rows_per_unit(self) -> int:
        """How many rows a unit brings along, unless another number is asked for."""
        declared = self._protected.catalog.rows or 1
        return 1 if self.unit is None else min(declared, MOST_ROWS)

    def _unit(self, asked: str | None) -> str | None:
        own = self._protected.catalog.unit
        if asked is not None and asked.casefold() != (own.name or "").casefold():
            raise ParameterError(
                f"account {self._protected.name!r} protects {own}, so that is what training "
                "protects. Nothing was spent. Leave --unit out.",
                parameter="unit",
            )
        return own.name

    def _encoding(self, target: str, features: Sequence[str] | None) -> "Encoding":
        from discreet.learn.recipes import Encoding

        goal = self._target(self._column(target, "target"))
        if features is None:
            taken = {goal.name.casefold(), (self.unit or "").casefold()}
            others = [one for name, one in self._columns.items() if name not in taken]
            found = [one for one in map(self._public, others) if one is not None]
            if not found:
                raise ParameterError(
                    f"no column of table {self.table!r} has declared bounds or keys, and none is "
                    f"used without. Nothing was spent. Declare them in {self._file}.",
                    parameter="features",
                )
        else:
            found = [self._feature(self._column(name, "features")) for name in features]
        return Encoding(features=tuple(found), target=goal)

    def _column(self, name: str, parameter: str) -> "Column":
        column = self._columns.get(name.casefold())
        if column is None:
            known = ", ".join(one.name for one in self._columns.values())
            raise ParameterError(
                f"table {self.table!r} has no column {name!r}; it has {known}.",
                parameter=parameter,
            )
        if self.unit is not None and column.name.casefold() == self.unit.casefold():
            raise ParameterError(
                f"column {name!r} says whose row it is: nothing shall be learnt from it, or about "
                "it.",
                parameter=parameter,
            )
        return column

    def _public(self, column: "Column") -> "Scaled | Choice | None":
        """Return how a column becomes numbers, None where too little about it is public."""
        from discreet.learn.recipes import Choice, Scaled

        if column.bounds is not None:
            low, high = column.bounds
            return Scaled(name=column.name, low=low, high=high)
        if column.keys is not None:
            return Choice(name=column.name, keys=column.keys)
        if column.kind == "boolean":
            return Scaled(name=column.name, low=0, high=1)
        return None

    def _feature(self, column: "Column") -> "Scaled | Choice":

        found = self._public(column)
        if found is not None:
            return found
        if column.kind == "number":
            why, what = "bounds", "{ bounds = [LOW, HIGH] }"
            leak = "scaling by the smallest and largest value would leak both"
        else:
            why, what = "keys", '{ keys = ["ONE", "OTHER"] }'
            leak = "listing the values that occur would leak them"
        raise ParameterError(
            f"column {column.name!r} has no declared {why}, and {leak}. Nothing was spent. Declare "
            f"it in {self._file}, under [tables.{self.table}.columns]: {column.name} = {what}, "
            "from what is known without the data.",
            parameter="features",
        )

    def _target(self, column: "Column") -> "Choice":
        from discreet.learn.recipes import Choice

        if column.keys is not None:
            return Choice(name=column.name, keys=column.keys)
        if column.kind == "boolean":
            return Choice(name=column.name, keys=(False, True))
        raise ParameterError(
            f"the classes of {column.name!r} are not public. Nothing was spent. List them in "
            f"{self._file}, under [tables.{self.table}.columns]: {column.name} = "
            '{ keys = ["ONE", "OTHER"] }, from what is known without the data.',
            parameter="target",
        )
