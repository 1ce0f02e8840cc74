"""The options of ``discreet train``, each in one place."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Model(StrEnum):
    """What can be trained on a table."""

    logistic = "logistic"
    mlp = "mlp"


class ImageModel(StrEnum):
    """What can be trained on images."""

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
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What was protected: its name, or its TOML file.")
]
TargetOption = Annotated[
    str, typer.Option(metavar="COLUMN", help="What to predict: a column with public keys.")
]
FeaturesOption = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="From which columns; all declared ones if not said."),
]
ModelOption = Annotated[Model, typer.Option(help="The recipe.")]
HeldOutOption = Annotated[
    str | None,
    typer.Option(
        "--held-out", metavar="FILE", help="A CSV or Parquet file of public rows to judge by."
    ),
]
EvaluateOption = Annotated[
    str | None,
    typer.Option(
        "--evaluate-epsilon",
        metavar="E",
        help="Or judge each model privately, for this price, on a tenth kept apart.",
    ),
]
UnitOption = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Who is protected: as the account says.")
]
RowsOption = Annotated[
    str | None,
    typer.Option("--rows-per-unit", metavar="N", help="How many rows a unit brings into a batch."),
]
TableOption = Annotated[
    str | None,
    typer.Option("--table", metavar="TABLE", help="Which one, where several are protected."),
]
FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Of IDX files, as MNIST comes, .gz or not.")
]
ImageModelOption = Annotated[ImageModel, typer.Option(help="The recipe.")]
ClassesOption = Annotated[str, typer.Option(metavar="K", help="How many classes there are.")]
AccountOption = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", help="Charge this account, made by: ledger create."),
]
