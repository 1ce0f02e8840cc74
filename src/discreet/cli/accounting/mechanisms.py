"""Mechanisms as they are described on the command line: options in, a loss out.

The accountants are imported when a command runs, so that ``--help`` stays quick.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from discreet._exact import Number, positive, whole
from discreet.cli.numbers import parse
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.accounting import Loss


class MechanismChoice(StrEnum):
    """What runs at each step, as typed on the command line."""

    gaussian = "gaussian"
    laplace = "laplace"
    discrete_gaussian = "discrete-gaussian"
    discrete_laplace = "discrete-laplace"
    randomized_response = "randomized-response"
    exponential = "exponential"
    pure = "pure"
    approximate = "approximate"
    zcdp = "zcdp"


# The loss of each mechanism, a name in discreet.accounting, and the options that describe it.
LOSSES: Final = {
    MechanismChoice.gaussian: ("GaussianLoss", ("noise-multiplier",)),
    MechanismChoice.laplace: ("LaplaceLoss", ("noise-multiplier",)),
    MechanismChoice.discrete_gaussian: (
        "DiscreteGaussianLoss",
        ("noise-multiplier", "sensitivity"),
    ),
    MechanismChoice.discrete_laplace: ("DiscreteLaplaceLoss", ("noise-multiplier", "sensitivity")),
    MechanismChoice.randomized_response: ("RandomizedResponseLoss", ("epsilon-each", "categories")),
    MechanismChoice.exponential: ("BoundedRangeLoss", ("epsilon-each",)),
    MechanismChoice.pure: ("PureLoss", ("epsilon-each",)),
    MechanismChoice.approximate: ("ApproximateLoss", ("epsilon-each", "delta-each")),
    MechanismChoice.zcdp: ("ZCDPLoss", ("rho",)),
}
LEAST: Final = {"sensitivity": 1, "categories": 2}  # whole numbers, which may be left out

MechanismOption = Annotated[
    MechanismChoice, typer.Option("--mechanism", "-m", help="What runs at each step.")
]
NoiseOption = Annotated[
    str | None,
    typer.Option(metavar="S", help="Noise (standard deviation or scale) over sensitivity."),
]
EachOption = Annotated[
    str | None,
    typer.Option(metavar="E", help="Epsilon of one step: pure, approximate, exponential, ..."),
]
DeltaEachOption = Annotated[
    str | None, typer.Option(metavar="D", help="Delta of one step: approximate.")
]
RhoOption = Annotated[str | None, typer.Option(metavar="R", help="rho of one step: zcdp.")]
CategoriesOption = Annotated[
    str | None, typer.Option(metavar="K", help="Answers to choose from: randomized-response.")
]
SensitivityOption = Annotated[
    str | None,
    typer.Option(metavar="D", help="Largest change of the integer: discrete mechanisms."),
]
RateOption = Annotated[
    str | None,
    typer.Option(metavar="Q", help="Chance that a unit takes part in a step (Poisson sampling)."),
]
StepsOption = Annotated[str, typer.Option(metavar="T", help="How many steps.")]


def run_of(
    mechanism: MechanismChoice,
    given: Mapping[str, str | float | None],
    *,
    rate: str | None,
    steps: str,
) -> "Loss":
    """Return the loss that the options describe; refuse options that do not belong together.

    >>> run_of(MechanismChoice.gaussian, {"noise-multiplier": "4"}, rate="0.01", steps="100")
    ComposedLoss(100 x SampledLoss(inner=GaussianLoss(noise_multiplier=4), rate=0.01))
    """
    _, takes = LOSSES[mechanism]
    for name, value in given.items():
        if value is not None and name not in takes:
            wanted = " and ".join(f"--{name}" for name in takes)
            raise ParameterError(
                f"--{name} does not describe {mechanism}, which takes {wanted}.",
                parameter=name.replace("-", "_"),
            )
    values: dict[str, Number] = {}
    for name in takes:
        value = given.get(name)
        if value is None:
            value = LEAST.get(name)
        if value is None:
            raise ParameterError(f"{mechanism} needs --{name}.", parameter=name.replace("-", "_"))
        values[name] = parse(value) if isinstance(value, str) else value
    step = _step(mechanism, values)
    if rate is not None:
        if mechanism is MechanismChoice.randomized_response:
            raise ParameterError(
                "--rate is for data that is sampled under add_remove; randomized response protects "
                "the answer of somebody who takes part (replace_one).",
                parameter="rate",
            )
        step = step.sampled(rate=parse(rate))
    count = whole(parse(steps), name="steps")
    return step if count == 1 else step * count


def _step(mechanism: MechanismChoice, values: Mapping[str, Number]) -> "Loss":
    from discreet import accounting

    fields: dict[str, Any] = {}
    for option, value in values.items():
        name = option.removesuffix("-each").replace("-", "_")
        least = LEAST.get(option)
        fields[name] = value if least is None else whole(value, name=name, minimum=least)
    if mechanism is MechanismChoice.discrete_gaussian:  # its loss has sigma itself
        noise = positive(fields.pop("noise_multiplier"), name="noise_multiplier")
        fields |= {"sigma": noise * fields["sensitivity"], "dimension": 1}
    loss: Loss = getattr(accounting, LOSSES[mechanism][0])(**fields)
    return loss


def described(mechanism: MechanismChoice, rate: str | None, steps: str) -> str:
    """Say in a few words what runs.

    >>> described(MechanismChoice.gaussian, "0.01", "10000")
    '10,000 steps of gaussian on samples of rate 0.01'
    """
    count = whole(parse(steps), name="steps")
    many = f"{count:,} steps of {mechanism}" if count > 1 else f"one step of {mechanism}"
    return many if rate is None else f"{many} on samples of rate {rate}"
