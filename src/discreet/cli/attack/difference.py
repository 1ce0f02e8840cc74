"""``discreet attack difference``: a salary out of sums over crowds."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from discreet._exact import whole
from discreet.cli.attack.generated import EPSILON, protected
from discreet.cli.attack.show import PlotOption, show_pair
from discreet.cli.numbers import parse
from discreet.cli.options import EpsilonOption, JsonOption
from discreet.cli.train.show import check_plot
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

PEOPLE: Final = 200
ASKED: Final = 20
KEY: Final = "row of person"
_COARSEST: Final = 10**15  # by then everything is 0, and a float still holds it


def difference(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A .parquet or .csv, a row a person."),
    ] = None,
    secret: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The whole numbers to recover from FILE.")
    ] = None,
    minimum: Annotated[
        str, typer.Option(metavar="K", help="The smallest group that is answered about.")
    ] = "10",
    rounding: Annotated[
        str, typer.Option(metavar="R", help="Answers are rounded to multiples of it; 0 if not.")
    ] = "0",
    epsilon: EpsilonOption = EPSILON,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recover single salaries from an interface that only answers about crowds.

    Once with a minimum group size and rounding, and once through a protected table, where each
    question is paid for. The payroll is generated where no file is named.

    Example: [bold]discreet attack difference --minimum 20 --rounding 5[/bold]
    """
    from discreet.attacks import differencing as attack

    least = whole(parse(minimum), name="minimum", hint="It is a number of people.")
    step = whole(parse(rounding), name="rounding", minimum=0, hint="It is 0 for exact answers.")
    price = parse(epsilon)
    check_plot(plot)
    column = "salary" if file is None else secret
    if (file is None) != (secret is None) or column is None:
        raise ParameterError("FILE and --secret go together.", parameter="secret")
    table = _people(file, column)
    values = table[column].to_pylist()
    top = 10 ** len(str(max(map(abs, values))))  # a round number, such as an outsider would take
    bounds = (0 if min(values) >= 0 else -top, top)
    rows = table.num_rows
    facts: dict[str, Any] = {"table": "payroll", "key": KEY, "secret": column, "bounds": bounds}
    facts["baseline"] = Counter(values).most_common(1)[0][1] / rows
    targets = {at: values[at] for at in range(0, rows, max(1, rows // ASKED))}
    desk = attack.Guarded(table, name="payroll", minimum=least, rounding=min(step, _COARSEST))
    before = attack.run(desk, targets, keys=(0, rows - 1), **facts)
    with protected(
        table, name="payroll", unit=KEY, epsilon=price, columns={column: {"bounds": bounds}}
    ) as tables:
        after = attack.run(tables, targets, keys=(0, rows - 1), **facts)
    show_pair(Console(), before, after, plot=plot, as_json=as_json)


def _people(file: Path | None, secret: str) -> "pa.Table":
    """Return the secrets, each with the number of its row."""
    import pyarrow as pa

    from discreet.attacks.frames import chosen, read
    from discreet.datasets import salaries

    table = read(salaries(PEOPLE) if file is None else file)
    (column,) = chosen(table, [secret], name="secret")
    values = table[column].combine_chunks()
    if not pa.types.is_integer(values.type) or values.null_count:
        raise DataError("the secret must be a column of whole numbers without gaps.")
    return pa.table({KEY: pa.array(range(len(values))), column: values})
