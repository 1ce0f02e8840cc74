"""``discreet train``: small models, trained privately and charged to the data's own budget.

torch is imported when a command runs, so that ``--help`` stays quick and works without it.
"""

from typing import Any

import typer
from typer.core import TyperGroup

from discreet.cli.options import BUDGET, JsonOption, LedgerOption
from discreet.cli.tables.opening import PurposeOption, WhoOption
from discreet.cli.train import options as say
from discreet.cli.train.request import TrainRequest
from discreet.cli.train.table import train_on_table

__all__ = ["register"]

DEFAULT = "table"
EPOCHS, BATCH = "10", "256"


class TableFirst(TyperGroup):
    r"""Read ``train NAME ...`` as ``train table NAME ...``.

    >>> from typer.testing import CliRunner
    >>> train = typer.Typer(cls=TableFirst)
    >>> for command in ("table", "images"):
    ...     _ = train.command(command)(lambda name: print(name))
    >>> CliRunner().invoke(train, ["people"]).output
    'people\n'
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default in front; see the class."""
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add ``discreet train`` to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> [command.name for command in app.registered_groups[0].typer_instance.registered_commands]
    ['table', 'images']
    """
    train = typer.Typer(cls=TableFirst, rich_markup_mode="rich")
    train.callback(invoke_without_command=True)(overview)
    train.command(DEFAULT)(table)
    train.command("images")(images)
    app.add_typer(train, name="train")


def overview(context: typer.Context) -> None:
    """Train a small model privately, and pay for it from the budget of the data.

    On a table that discreet protect made:
    [bold]discreet train people --target employed --features age,hours --epsilon 1 --delta 1e-5
    --held-out public.csv[/bold]

    On a folder of images in IDX files, as MNIST comes:
    [bold]discreet train images mnist --epsilons 1,3 --delta 1e-5 --compare --plot gap.png[/bold]

    All options of the first are told by [bold]discreet train table --help[/bold]. On generated
    data, in a minute: [bold]discreet demo learn[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def table(
    context: typer.Context,
    name: say.NameArgument,
    target: say.TargetOption,
    delta: say.DeltaOption,
    features: say.FeaturesOption = None,
    epsilon: say.EpsilonOption = None,
    epsilons: say.EpsilonsOption = None,
    model: say.ModelOption = say.Model.logistic,
    epochs: say.EpochsOption = EPOCHS,
    batch_size: say.BatchOption = BATCH,
    held_out: say.HeldOutOption = None,
    evaluate_epsilon: say.EvaluateOption = None,
    compare: say.CompareOption = False,
    allow_non_private: say.AllowOption = False,
    unit: say.UnitOption = None,
    rows_per_unit: say.RowsOption = None,
    which: say.TableOption = None,
    clip: say.ClipOption = None,
    learning_rate: say.RateOption = None,
    population: say.PopulationOption = None,
    out: say.OutOption = None,
    plot: say.PlotOption = None,
    who: WhoOption = None,
    purpose: PurposeOption = "training",
    as_json: JsonOption = False,
) -> None:
    """Train a classifier on a protected table, and charge its account.

    Columns become numbers by declared bounds and keys alone, so no statistic of the data is used:
    a column without is refused, and the message says what to write into the TOML file. Batches
    are drawn by the account's unit. All steps are reserved before the first.

    An accuracy on private data is a release of its own. So it comes from --held-out, rows that you
    declare public, or is paid for with --evaluate-epsilon.

    Example: [bold]discreet train people --target employed --features age,hours,region
    --epsilon 1 --delta 1e-5 --epochs 10 --batch-size 500 --model mlp --held-out public.csv
    --out model.pt[/bold]

    Compare budgets: [bold]discreet train people --target employed --epsilons 0.5,1,3
    --delta 1e-5 --evaluate-epsilon 0.1 --plot gap.png[/bold]
    """
    request = TrainRequest.of(context.params)
    train_on_table(
        request,
        name,
        model=model.value,
        target=target,
        features=features,
        unit=unit,
        rows_per_unit=rows_per_unit,
        table=which,
        held_out=held_out,
        evaluate_epsilon=evaluate_epsilon,
    )


def images(
    context: typer.Context,
    folder: say.FolderArgument,
    delta: say.DeltaOption,
    epsilon: say.EpsilonOption = None,
    epsilons: say.EpsilonsOption = None,
    model: say.ImageModelOption = say.ImageModel.cnn,
    classes: say.ClassesOption = "10",
    epochs: say.EpochsOption = EPOCHS,
    batch_size: say.BatchOption = "1024",
    compare: say.CompareOption = False,
    allow_non_private: say.AllowOption = False,
    account: say.AccountOption = None,
    ledger: LedgerOption = BUDGET,
    clip: say.ClipOption = None,
    learning_rate: say.RateOption = None,
    population: say.PopulationOption = None,
    out: say.OutOption = None,
    plot: say.PlotOption = None,
    who: WhoOption = None,
    purpose: PurposeOption = "training",
    as_json: JsonOption = False,
) -> None:
    """Train a classifier of images; every image is a unit of its own.

    The t10k files are the held-out set: you declare them public by putting them there. Without
    --account nothing is charged, so nobody adds up what several runs on the same images cost.

    Example: [bold]discreet train images mnist --epsilons 1,3 --delta 1e-5 --epochs 15
    --batch-size 2048 --compare --plot gap.png[/bold]

    With a budget: [bold]discreet ledger init[/bold], [bold]discreet ledger create faces
    --unit record --epsilon 3 --delta 1e-5[/bold], then [bold]discreet train images faces
    --epsilon 1 --delta 1e-6 --account faces --out model.pt[/bold]
    """
    from discreet.cli.train.images import train_on_images

    request = TrainRequest.of(context.params)
    train_on_images(
        request, folder, model=model.value, classes=classes, account=account, ledger=ledger
    )
