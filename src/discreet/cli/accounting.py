"""``discreet epsilon``, ``discreet calibrate`` and ``discreet tradeoff``: accounting by command.

The accountants are imported when a command runs, so that ``--help`` stays quick.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet._exact import Number, exact, float_up, positive, whole
from discreet.cli.numbers import for_json, parse
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.accounting import Loss
    from discreet.accounting.comparison.methods import MethodResult

WIDTH, HEIGHT = 60, 20
SHOWN_RATES: Final = (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5)


class Mechanism(StrEnum):
    """What runs at each step, as typed on the command line.

    >>> Mechanism("discrete-gaussian").name
    'discrete_gaussian'
    """

    gaussian = "gaussian"
    laplace = "laplace"
    discrete_gaussian = "discrete-gaussian"
    discrete_laplace = "discrete-laplace"
    randomized_response = "randomized-response"
    exponential = "exponential"
    pure = "pure"
    approximate = "approximate"
    zcdp = "zcdp"


# Which options each mechanism is described by.
TAKES: Final = {
    Mechanism.gaussian: ("noise-multiplier",),
    Mechanism.laplace: ("noise-multiplier",),
    Mechanism.discrete_gaussian: ("noise-multiplier", "sensitivity"),
    Mechanism.discrete_laplace: ("noise-multiplier", "sensitivity"),
    Mechanism.randomized_response: ("epsilon-each", "categories"),
    Mechanism.exponential: ("epsilon-each",),
    Mechanism.pure: ("epsilon-each",),
    Mechanism.approximate: ("epsilon-each", "delta-each"),
    Mechanism.zcdp: ("rho",),
}
MAY_BE_LEFT_OUT: Final = {"sensitivity": "1", "categories": "2"}

MechanismOption = Annotated[
    Mechanism, typer.Option("--mechanism", "-m", help="What runs at each step.")
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
DeltaOption = Annotated[
    str, typer.Option(metavar="D", help="Chance of an exception, far below one over the people.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this page to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> [command.callback.__name__ for command in app.registered_commands]
    ['epsilon', 'calibrate', 'tradeoff']
    """
    for command in (epsilon, calibrate, tradeoff):
        app.command()(command)


def epsilon(
    delta: DeltaOption,
    mechanism: MechanismOption = Mechanism.gaussian,
    noise_multiplier: NoiseOption = None,
    epsilon_each: EachOption = None,
    delta_each: DeltaEachOption = None,
    rho: RhoOption = None,
    categories: CategoriesOption = None,
    sensitivity: SensitivityOption = None,
    rate: RateOption = None,
    steps: StepsOption = "1",
    compare: Annotated[
        bool, typer.Option("--compare", help="Show every accounting method with its time.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what a run costs: certified bounds on epsilon from both sides.

    A training run with sampled Gaussian noise:
    [bold]discreet epsilon --noise-multiplier 4 --rate 0.01 --steps 10000 --delta 1e-5[/bold]

    Ten thousand small pure queries, by every method there is:
    [bold]discreet epsilon -m pure --epsilon-each 0.01 --steps 10000 --delta 1e-5 --compare[/bold]

    A survey of three questions with coins:
    [bold]discreet epsilon -m randomized-response --epsilon-each 1 --steps 3 --delta 0[/bold]
    """
    from discreet.accounting import bracket
    from discreet.accounting.comparison import methods as every

    given = {
        "noise-multiplier": noise_multiplier,
        "epsilon-each": epsilon_each,
        "delta-each": delta_each,
        "rho": rho,
        "categories": categories,
        "sensitivity": sensitivity,
    }
    loss = run_of(mechanism, given, rate=rate, steps=steps)
    allowed = parse(delta)
    import_module("scipy.fft")  # here, so that the time shown is that of the accountant
    start = time.perf_counter()
    found = bracket(loss, delta=allowed)
    seconds = time.perf_counter() - start
    results = every.compare(loss, delta=allowed) if compare else ()
    method = every.way(loss, epsilon=found.upper)
    if as_json:
        facts: dict[str, object] = {
            "epsilon_upper": _finite(found.upper),
            "epsilon_lower": _finite(found.lower),
            "delta": for_json(allowed),
            "method": method,
            "seconds": seconds,
        }
        if compare:
            facts["methods"] = [_method_facts(result) for result in results]
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
        return
    console = Console()
    if math.isinf(found.upper):
        say(console, f"epsilon is infinite at delta = {shown(allowed)}.", bold=True)
        say(console, "No epsilon is proved at this delta. Noise that is not pure needs more.")
    else:
        say(
            console,
            f"epsilon is at most {digits(found.upper, up=True)} at delta = {shown(allowed)}",
            bold=True,
        )
        say(
            console,
            f"and at least {digits(found.lower, up=False)}, for "
            f"{described(mechanism, rate, steps)} ({method}, {1000 * seconds:.3g} ms).",
        )
    if compare:
        console.print(method_table(results))


def calibrate(
    epsilon: Annotated[str, typer.Option(metavar="E", help="The privacy loss of the whole run.")],
    delta: DeltaOption,
    mechanism: MechanismOption = Mechanism.gaussian,
    delta_each: DeltaEachOption = None,
    categories: CategoriesOption = None,
    sensitivity: SensitivityOption = None,
    rate: RateOption = None,
    steps: StepsOption = "1",
    as_json: JsonOption = False,
) -> None:
    """Find the smallest noise that keeps a run within a budget.

    For noise mechanisms the answer is the noise multiplier (noise over sensitivity), for the
    others the largest epsilon or rho that each step may have. It is safe as printed.

    The noise of a training run:
    [bold]discreet calibrate --epsilon 3 --delta 1e-5 --rate 0.01 --steps 10000[/bold]

    How much each of a thousand queries may cost:
    [bold]discreet calibrate -m pure --epsilon 1 --delta 1e-6 --steps 1000[/bold]
    """
    from discreet.accounting import bracket
    from discreet.accounting import calibrate as smallest
    from discreet.accounting import delta as delta_of
    from discreet.accounting.comparison.methods import way

    budget, allowed = parse(epsilon), parse(delta)
    positive(budget, name="epsilon")
    name = TAKES[mechanism][0]
    is_noise = name == "noise-multiplier"
    given = {"delta-each": delta_each, "categories": categories, "sensitivity": sensitivity}

    def make(parameter: float) -> "Loss":
        value = parameter if is_noise else 1 / parameter
        return run_of(mechanism, {**given, name: value}, rate=rate, steps=steps)

    start = time.perf_counter()
    found = smallest(make, epsilon=budget, delta=allowed)
    # The answer is rounded to what is printed, towards more privacy, so that it can be copied.
    value = float(digits(found if is_noise else 1 / found, up=is_noise))
    loss = make(value if is_noise else 1 / value)
    reached = bracket(loss, delta=allowed)
    # Epsilon and delta are bounded by different computations: here delta at the budget settles it.
    fits = delta_of(loss, epsilon=budget) <= allowed
    upper = min(reached.upper, float_up(exact(budget, name="epsilon"))) if fits else reached.upper
    seconds = time.perf_counter() - start
    if as_json:
        facts = {
            name.replace("-", "_"): value,
            "epsilon_upper": _finite(upper),
            "epsilon_lower": _finite(min(reached.lower, upper)),
            "delta": for_json(allowed),
            "method": way(loss, epsilon=reached.upper),
            "seconds": seconds,
        }
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
        return
    console = Console()
    say(console, f"{name.replace('-', ' ')} = {digits(value, up=is_noise)}", bold=True)
    say(
        console,
        f"costs epsilon = {digits(upper, up=True)} at delta = {shown(allowed)}, "
        f"for {described(mechanism, rate, steps)}.",
    )


def tradeoff(
    mechanism: MechanismOption = Mechanism.gaussian,
    noise_multiplier: NoiseOption = None,
    epsilon_each: EachOption = None,
    delta_each: DeltaEachOption = None,
    rho: RhoOption = None,
    categories: CategoriesOption = None,
    sensitivity: SensitivityOption = None,
    rate: RateOption = None,
    steps: StepsOption = "1",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the curve into a .png, .svg or .pdf file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what any attacker must put up with: misses at every rate of false alarms.

    In the terminal:
    [bold]discreet tradeoff --noise-multiplier 4 --rate 0.01 --steps 10000[/bold]

    As a picture:
    [bold]discreet tradeoff -m laplace --noise-multiplier 2 --plot curve.png[/bold]
    """
    from discreet.accounting import curves

    given = {
        "noise-multiplier": noise_multiplier,
        "epsilon-each": epsilon_each,
        "delta-each": delta_each,
        "rho": rho,
        "categories": categories,
        "sensitivity": sensitivity,
    }
    loss = run_of(mechanism, given, rate=rate, steps=steps)
    if plot is not None:
        written = curves.plot_tradeoff({described(mechanism, rate, steps): loss}, path=plot)
        if not as_json:
            say(Console(), f"Wrote {written}.")
            return
    columns = [i / (WIDTH - 1) for i in range(WIDTH)]
    misses = curves.tradeoff(loss, false_positive_rates=[*columns, *SHOWN_RATES]).tolist()
    table = list(zip(SHOWN_RATES, misses[WIDTH:], strict=True))
    advantage = float(curves.profile(loss, epsilons=[0])[0])
    if as_json:
        facts = {
            "advantage": advantage,
            "false_positive_rates": [*SHOWN_RATES, *columns],
            "false_negative_rates": [*misses[WIDTH:], *misses[:WIDTH]],
        }
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
        return
    console = Console()
    say(console, f"What an attacker must miss, for {described(mechanism, rate, steps)}", bold=True)
    for line in drawing(misses[:WIDTH]):
        console.print(Text(line), soft_wrap=True)
    rates = Table(box=box.SIMPLE_HEAD)
    for title in ("false alarms", "misses, at least", "caught, at most"):
        rates.add_column(title, justify="right", no_wrap=True)
    for alarms, missed in table:
        rates.add_row(
            f"{alarms:g}", digits(missed, up=False, places=5), digits(1 - missed, up=True)
        )
    console.print(rates)
    say(console, f"The best attacker's advantage is at most {digits(advantage, up=True)}.")


def run_of(
    mechanism: Mechanism, given: Mapping[str, str | float | None], *, rate: str | None, steps: str
) -> "Loss":
    """Return the loss that the options describe; refuse options that do not belong together.

    >>> run_of(Mechanism.gaussian, {"noise-multiplier": "4"}, rate="0.01", steps="100")
    ComposedLoss(100 x SampledLoss(inner=GaussianLoss(noise_multiplier=4), rate=0.01))
    """
    takes = TAKES[mechanism]
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
            value = MAY_BE_LEFT_OUT.get(name)
        if value is None:
            raise ParameterError(f"{mechanism} needs --{name}.", parameter=name.replace("-", "_"))
        values[name] = parse(value) if isinstance(value, str) else value
    step = _step(mechanism, values)
    if rate is not None:
        if mechanism is Mechanism.randomized_response:
            raise ParameterError(
                "--rate is for data that is sampled under add_remove; randomized response protects "
                "the answer of somebody who takes part (replace_one).",
                parameter="rate",
            )
        step = step.sampled(rate=parse(rate))
    count = whole(parse(steps), name="steps")
    return step if count == 1 else step * count


def _step(mechanism: Mechanism, values: dict[str, Number]) -> "Loss":
    from discreet import accounting as a

    noise, each = values.get("noise-multiplier", 0), values.get("epsilon-each", 0)
    if mechanism in (Mechanism.discrete_gaussian, Mechanism.discrete_laplace):
        shift = whole(values["sensitivity"], name="sensitivity")
    makers: dict[Mechanism, Callable[[], Loss]] = {
        Mechanism.gaussian: lambda: a.GaussianLoss(noise_multiplier=noise),
        Mechanism.laplace: lambda: a.LaplaceLoss(noise_multiplier=noise),
        Mechanism.discrete_gaussian: lambda: a.DiscreteGaussianLoss(
            sigma=positive(noise, name="noise_multiplier") * shift, sensitivity=shift, dimension=1
        ),
        Mechanism.discrete_laplace: lambda: a.DiscreteLaplaceLoss(
            noise_multiplier=noise, sensitivity=shift
        ),
        Mechanism.randomized_response: lambda: a.RandomizedResponseLoss(
            epsilon=each, categories=whole(values["categories"], name="categories", minimum=2)
        ),
        Mechanism.exponential: lambda: a.BoundedRangeLoss(epsilon=each),
        Mechanism.pure: lambda: a.PureLoss(epsilon=each),
        Mechanism.approximate: lambda: a.ApproximateLoss(epsilon=each, delta=values["delta-each"]),
        Mechanism.zcdp: lambda: a.ZCDPLoss(rho=values["rho"]),
    }
    return makers[mechanism]()


def described(mechanism: Mechanism, rate: str | None, steps: str) -> str:
    """Say in a few words what runs.

    >>> described(Mechanism.gaussian, "0.01", "10000")
    '10,000 steps of gaussian on samples of rate 0.01'
    """
    count = whole(parse(steps), name="steps")
    many = f"{count:,} steps of {mechanism}" if count > 1 else f"one step of {mechanism}"
    return many if rate is None else f"{many} on samples of rate {rate}"


def digits(value: float, *, up: bool, places: int = 6) -> str:
    """Write a number with some significant digits, rounded in the stated direction.

    A number that is written exactly but for its 13th digit is: 0.1 * 100 is 10, not 10.0001.

    >>> digits(0.94688298, up=True), digits(0.94688298, up=False), digits(1.234567e-7, up=True)
    ('0.946883', '0.946882', '1.23457e-07')
    >>> digits(10.000000000000002, up=True)
    '10'
    """
    decimal = Decimal(value)
    if not decimal or not decimal.is_finite():
        return f"{value:g}"
    nearest = float(f"{value:.{places}g}")
    if abs(nearest - value) <= 1e-13 * abs(value):
        return f"{nearest:.{places}g}"
    step = Decimal(1).scaleb(decimal.adjusted() - places + 1)
    rounded = decimal.quantize(step, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(rounded):.{places}g}"


def shown(value: Number) -> str:
    """Write a number as it was typed, never rounded to zero.

    >>> shown(1e-7), shown(0)
    ('1e-07', '0')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def say(console: Console, text: str, *, bold: bool = False) -> None:
    """Print one paragraph.

    >>> say(Console(width=40), "epsilon is at most 1")
    epsilon is at most 1
    """
    console.print(Text(text, style="bold" if bold else ""))


def method_table(results: "tuple[MethodResult, ...]") -> Table:
    """Lay out methods side by side.

    >>> method_table(()).row_count
    0
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("note")
    for result in results:
        if result.epsilon is None:
            number = "-"
        else:
            number = (
                digits(result.epsilon, up=True) if result.is_bound else f"~{result.epsilon:.4g}"
            )
        table.add_row(result.name, number, f"{1000 * result.seconds:.3g}", result.note)
    return table


def drawing(misses: list[float]) -> list[str]:
    """Draw a trade-off curve in text, a dot for guessing beside it.

    >>> drawing([1.0, 0.5, 0.0])[0]
    ' misses'
    """
    last = len(misses) - 1
    rows = [[" "] * len(misses) for _ in range(HEIGHT)]
    for x, missed in enumerate(misses):
        rows[round((1 - (1 - x / last)) * (HEIGHT - 1))][x] = "."
        rows[round((1 - missed) * (HEIGHT - 1))][x] = "*"
    axis = ["1 |", *["  |"] * (HEIGHT - 2), "0 |"]
    body = [label + "".join(row).rstrip() for label, row in zip(axis, rows, strict=True)]
    legend = "   0" + "false alarms (. guessing)".center(len(misses) - 2) + "1"
    return [" misses", *body, "  +" + "-" * len(misses), legend]


def _method_facts(result: "MethodResult") -> dict[str, object]:
    return {
        "name": result.name,
        "epsilon": result.epsilon,
        "seconds": result.seconds,
        "is_bound": result.is_bound,
        "note": result.note,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity; null says that there is no number."""
    return value if math.isfinite(value) else None
