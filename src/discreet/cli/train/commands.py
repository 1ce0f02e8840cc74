"""``discreet train``: small models, trained privately and charged to the data's own budget.

torch is imported when a command runs, so that ``--help`` stays quick and works without it.
"""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from discreet._exact import Number, positive, probability, whole
from discreet.cli.ledger.opening import writing
from discreet.cli.numbers import parse
from discreet.cli.options import BUDGET, JsonOption, LedgerOption
from discreet.cli.tables.opening import PurposeOption, WhoOption
from discreet.cli.train import show as shown
from discreet.cli.train.runs import (
    APART,
    Evaluation,
    OnPrivate,
    OnPublic,
    Run,
    Settings,
    carry_out,
    need_torch,
)
from discreet.cli.train.table import TableRows, opened
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.learn.recipes.encoding import EncodedRows
    from discreet.learn.recipes.recipe import Recipe
    from discreet.ledger import Account

__all__ = ["register"]

DEFAULT = "table"
EPOCHS, BATCH = "10", "256"


class Model(StrEnum):
    """What can be trained on a table.

    >>> Model("mlp").name
    'mlp'
    """

    logistic = "logistic"
    mlp = "mlp"


class ImageModel(StrEnum):
    """What can be trained on images.

    >>> ImageModel("cnn").name
    'cnn'
    """

    cnn = "cnn"
    mlp = "mlp"
    logistic = "logistic"


EpsilonOption = Annotated[
    str | None,
    typer.Option(
        "--epsilon", metavar="E", help="The guarantee of the model, such as 1; --out keeps it."
    ),
]
EpsilonsOption = Annotated[
    str | None,
    typer.Option(
        "--epsilons",
        metavar="E,E,...",
        help="Train once for each of these, to compare: each is paid for.",
    ),
]
DeltaOption = Annotated[
    str, typer.Option(metavar="D", help="The chance of an exception, such as 1e-5.")
]
EpochsOption = Annotated[
    str, typer.Option(metavar="N", help="How often everybody takes part, on average.")
]
BatchOption = Annotated[
    str, typer.Option("--batch-size", metavar="B", help="How many units a batch has, on average.")
]
ClipOption = Annotated[
    str | None,
    typer.Option(metavar="C", help="The largest norm of one unit's gradient; 1 if not said."),
]
RateOption = Annotated[
    str | None,
    typer.Option("--learning-rate", metavar="R", help="The recipe's own if not said."),
]
PopulationOption = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="How many units there are, in public; the rounded number if not said."
    ),
]
CompareOption = Annotated[
    bool,
    typer.Option("--compare", help="Also train the same model without privacy: NOT PRIVATE."),
]
AllowOption = Annotated[
    bool,
    typer.Option(
        "--allow-non-private", help="Let --compare use protected data. For the owner's eyes only."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the private model there: torch.load."),
]
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw accuracy against epsilon: a .png, say."),
]


class TableFirst(TyperGroup):
    """Read ``train NAME ...`` as ``train table NAME ...``.

    >>> TableFirst.__name__
    'TableFirst'
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
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What was protected: its name, or its TOML file.")
    ],
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="What to predict: a column with public keys.")
    ],
    delta: DeltaOption,
    features: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="From which columns; all declared ones if not said."),
    ] = None,
    epsilon: EpsilonOption = None,
    epsilons: EpsilonsOption = None,
    model: Annotated[Model, typer.Option(help="The recipe.")] = Model.logistic,
    epochs: EpochsOption = EPOCHS,
    batch_size: BatchOption = BATCH,
    held_out: Annotated[
        str | None,
        typer.Option(
            "--held-out", metavar="FILE", help="A CSV or Parquet file of public rows to judge by."
        ),
    ] = None,
    evaluate_epsilon: Annotated[
        str | None,
        typer.Option(
            "--evaluate-epsilon",
            metavar="E",
            help="Or judge each model privately, for this price, on a tenth kept apart.",
        ),
    ] = None,
    compare: CompareOption = False,
    allow_non_private: AllowOption = False,
    unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Who is protected: as the account says.")
    ] = None,
    rows_per_unit: Annotated[
        str | None,
        typer.Option(
            "--rows-per-unit", metavar="N", help="How many rows a unit brings into a batch."
        ),
    ] = None,
    which: Annotated[
        str | None,
        typer.Option("--table", metavar="TABLE", help="Which one, where several are protected."),
    ] = None,
    clip: ClipOption = None,
    learning_rate: RateOption = None,
    population: PopulationOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
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
    need_torch()
    budgets, kept = _budgets(epsilon, epsilons)
    shared = _shared(delta, epochs, batch_size, clip, learning_rate)
    price = None if evaluate_epsilon is None else parse(evaluate_epsilon)
    if price is not None:
        positive(price, name="evaluate_epsilon")
    _check_places(out, plot, kept)
    if held_out is not None and price is not None:
        raise ParameterError(
            "judge by --held-out or by --evaluate-epsilon, not by both.",
            parameter="evaluate_epsilon",
        )
    _check_judged(held_out is not None or price is not None, len(budgets), compare, plot)
    if compare and not allow_non_private:
        raise _no_twin(f"the protected table {name!r}")
    with opened(name, who=who, purpose=purpose) as protected:
        source = TableRows(
            protected, table=which, target=target, features=_names(features), unit=unit
        )
        size = _number(population, "population") or protected.catalog.size
        settings = Settings(
            **shared,
            recipe=_recipe(model),
            classes=source.encoding.classes,
            account=protected.account,
            unit=source.unit,
            rows_per_unit=_number(rows_per_unit, "rows_per_unit") or source.rows_per_unit,
            population=size if price is None or size is None else max(1, size - int(size * APART)),
            who=protected._who,
            purpose=purpose,
            progress=False if as_json else None,
        )
        evaluation: Evaluation | None = None
        if held_out is not None:
            evaluation = OnPublic(
                rows=source.public_rows(held_out), words=f"{held_out}, which was declared public"
            )
        rows = source.rows()
        if price is not None:
            rows, evaluation = _private(rows, settings, price)
        runs = carry_out(settings, rows, epsilons=budgets, twin=compare, evaluation=evaluation)
        on = f"{source.encoding.target.name} of {source.table}"
        facts = {"encoding": source.encoding, "shape": rows.matrix.shape[1:]}
        _write(runs, settings, facts, kept=kept, out=out, plot=plot, on=on)
        _tell(runs, settings, evaluation, on=on, as_json=as_json)


def images(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Of IDX files, as MNIST comes, .gz or not.")
    ],
    delta: DeltaOption,
    epsilon: EpsilonOption = None,
    epsilons: EpsilonsOption = None,
    model: Annotated[ImageModel, typer.Option(help="The recipe.")] = ImageModel.cnn,
    classes: Annotated[str, typer.Option(metavar="K", help="How many classes there are.")] = "10",
    epochs: EpochsOption = EPOCHS,
    batch_size: BatchOption = "1024",
    compare: CompareOption = False,
    allow_non_private: AllowOption = False,
    account: Annotated[
        str | None,
        typer.Option(
            "--account", metavar="NAME", help="Charge this account, made by: ledger create."
        ),
    ] = None,
    ledger: LedgerOption = BUDGET,
    clip: ClipOption = None,
    learning_rate: RateOption = None,
    population: PopulationOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
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
    need_torch()
    from discreet.cli.train import images as images_of

    budgets, kept = _budgets(epsilon, epsilons)
    shared = _shared(delta, epochs, batch_size, clip, learning_rate)
    many = whole(parse(classes), name="classes", minimum=2)
    _check_places(out, plot, kept)
    has_public = images_of.has_images(folder, images_of.HELD_OUT)
    _check_judged(has_public, len(budgets), compare, plot, remedy="the t10k files in the folder")
    if compare and account is not None and not allow_non_private:
        raise _no_twin(f"images of the account {account!r}")
    with ExitStack() as stack:
        charged: Account | None = None
        if account is not None:
            charged = stack.enter_context(writing(ledger, None))[account]
        rows = images_of.read_images(folder, images_of.TRAINING, classes=many)
        evaluation = None
        if has_public:
            evaluation = OnPublic(
                rows=images_of.read_images(folder, images_of.HELD_OUT, classes=many),
                words="the t10k images, which were declared public",
            )
        if charged is not None:
            images_of.register_images(charged, folder)
        settings = Settings(
            **shared,
            recipe=_recipe(model),
            classes=many,
            account=charged,
            population=_number(population, "population"),
            who=who or _user(),
            purpose=purpose,
            progress=False if as_json else None,
        )
        runs = carry_out(settings, rows, epsilons=budgets, twin=compare, evaluation=evaluation)
        on = f"images of {folder.resolve().name}"
        facts = {"shape": rows.matrix.shape[1:]}
        _write(runs, settings, facts, kept=kept, out=out, plot=plot, on=on)
        _tell(runs, settings, evaluation, on=on, as_json=as_json)


def _budgets(epsilon: str | None, epsilons: str | None) -> tuple[list[Number], Number | None]:
    """Return all epsilons in ascending order, and the one whose model is kept."""
    kept = None if epsilon is None else parse(epsilon)
    several = [parse(one.strip()) for one in (epsilons or "").split(",") if one.strip()]
    found = several if kept is None else [*several, kept]
    for one in found:
        positive(one, name="epsilon")
    if not found:
        raise ParameterError(
            "say how private the model shall be, with --epsilon 1, or compare with "
            "--epsilons 0.5,1,3.",
            parameter="epsilon",
        )
    if kept is None and len(found) == 1:
        kept = found[0]
    return sorted(dict.fromkeys(found)), kept


def _shared(
    delta: str, epochs: str, batch_size: str, clip: str | None, learning_rate: str | None
) -> dict[str, Any]:
    """Read the numbers that both commands have, refusing bad ones before anything is opened."""
    found: dict[str, Any] = {"delta": parse(delta), "epochs": parse(epochs)}
    probability(found["delta"], name="delta", hint="Gaussian noise needs a delta above 0.")
    positive(found["epochs"], name="epochs")
    found["batch_size"] = whole(parse(batch_size), name="batch_size")
    for name, text in (("clip", clip), ("learning_rate", learning_rate)):
        found[name] = None if text is None else parse(text)
        if text is not None:
            positive(found[name], name=name)
    return found


def _number(text: str | None, name: str) -> int | None:
    return None if text is None else whole(parse(text), name=name)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [one.strip() for one in text.split(",") if one.strip()]


def _user() -> str:
    import getpass

    return getpass.getuser()


def _recipe(model: Model | ImageModel) -> "Recipe":
    from discreet.learn.recipes import recipe as recipes

    known = {one.name: one for one in (recipes.LOGISTIC, recipes.MLP, recipes.CNN)}
    return known[model.value]


def _check_places(out: Path | None, plot: Path | None, kept: Number | None) -> None:
    shown.check_plot(plot)
    shown.check_place(out, "out")
    if out is not None and kept is None:
        raise ParameterError(
            "say whose model --out shall keep, with --epsilon.", parameter="epsilon"
        )


def _check_judged(
    is_judged: bool,
    budgets: int,
    compare: bool,
    plot: Path | None,
    remedy: str = "--held-out FILE, rows that are public, or --evaluate-epsilon E, which is paid",
) -> None:
    if not is_judged and (compare or budgets > 1 or plot is not None):
        raise ParameterError(
            "models are compared by their accuracy, and an accuracy on private data is a release "
            f"of its own. Nothing was spent. Give {remedy}.",
            parameter="held_out",
        )


def _no_twin(what: str) -> ParameterError:
    return ParameterError(
        f"--compare would train a model without privacy on {what}: NOT PRIVATE, and no budget can "
        "pay for it. Nothing was spent. Compare budgets with --epsilons alone; or, if nobody but "
        "the owner of the data will see it, say --allow-non-private.",
        parameter="compare",
    )


def _private(
    rows: "EncodedRows", settings: Settings, price: Number
) -> tuple["EncodedRows", OnPrivate]:
    """Keep a tenth of the units apart, to judge models on them."""
    from discreet.learn.recipes.evaluation import PrivateAccuracy, set_apart

    account = settings.account
    assert account is not None
    mechanism = PrivateAccuracy(epsilon=price, neighbours=account.neighbours)
    rest, apart = set_apart(rows, share=APART)
    purpose = f"{settings.purpose}: evaluation"
    return rest, OnPrivate(apart, mechanism, account, who=settings.who, purpose=purpose)


def _tell(
    runs: list[Run],
    settings: Settings,
    evaluation: Evaluation | None,
    *,
    on: str,
    as_json: bool,
) -> None:
    if as_json:
        shown.echo_runs(runs, settings, evaluation, on=on)
    else:
        shown.print_runs(Console(), runs, settings, evaluation, on=on)


def _write(
    runs: list[Run],
    settings: Settings,
    facts: dict[str, Any],
    *,
    kept: Number | None,
    out: Path | None,
    plot: Path | None,
    on: str,
) -> None:
    if out is not None:
        shown.write_model(out, next(run for run in runs if run.epsilon == kept), settings, facts)
    if plot is not None:
        shown.draw_runs(plot, runs, on=on)
