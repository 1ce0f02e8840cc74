"""The commands: what a run costs, which noise it takes, what an attacker must miss.

The accountants are imported when a command runs, so that ``--help`` stays quick.
"""

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet._exact import exact, float_up, positive
from discreet.cli.accounting.mechanisms import (
    LOSSES,
    CategoriesOption,
    DeltaEachOption,
    EachOption,
    MechanismChoice,
    MechanismOption,
    NoiseOption,
    RateOption,
    RhoOption,
    SensitivityOption,
    StepsOption,
    described,
    run_of,
)
from discreet.cli.accounting.show import (
    drawing,
    finite,
    method_facts,
    method_table,
    print_bracket,
)
from discreet.cli.numbers import digits, for_json, parse, shown
from discreet.cli.options import FILE, JsonOption
from discreet.cli.output import echo_json, say

if TYPE_CHECKING:
    from discreet.accounting import Loss

WIDTH: Final = 60  # columns of a curve
SHOWN_RATES: Final = (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5)

DeltaOption = Annotated[
    str, typer.Option(metavar="D", help="Chance of an exception, far below one over the people.")
]


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
    mechanism: MechanismOption = MechanismChoice.gaussian,
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
    from discreet.accounting import comparison as every

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
    method = every.best_method(loss, epsilon=found.upper)
    if as_json:
        facts: dict[str, object] = {
            "epsilon_upper": finite(found.upper),
            "epsilon_lower": finite(found.lower),
            "delta": for_json(allowed),
            "method": method,
            "seconds": seconds,
        }
        if compare:
            facts["methods"] = [method_facts(result) for result in results]
        echo_json(facts)
        return
    console = Console()
    how = f"{described(mechanism, rate, steps)} ({method}, {1000 * seconds:.3g} ms)"
    print_bracket(console, found, delta=allowed, how=how)
    if compare:
        console.print(method_table(results))


def calibrate(
    epsilon: Annotated[str, typer.Option(metavar="E", help="The privacy loss of the whole run.")],
    delta: DeltaOption,
    mechanism: MechanismOption = MechanismChoice.gaussian,
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
    from discreet.accounting.comparison import best_method

    budget, allowed = parse(epsilon), parse(delta)
    positive(budget, name="epsilon")
    name = LOSSES[mechanism][1][0]
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
            "epsilon_upper": finite(upper),
            "epsilon_lower": finite(min(reached.lower, upper)),
            "delta": for_json(allowed),
            "method": best_method(loss, epsilon=reached.upper),
            "seconds": seconds,
        }
        echo_json(facts)
        return
    console = Console()
    say(console, f"{name.replace('-', ' ')} = {digits(value, up=is_noise)}", bold=True)
    say(
        console,
        f"costs epsilon = {digits(upper, up=True)} at delta = {shown(allowed)}, "
        f"for {described(mechanism, rate, steps)}.",
    )


def tradeoff(
    mechanism: MechanismOption = MechanismChoice.gaussian,
    noise_multiplier: NoiseOption = None,
    epsilon_each: EachOption = None,
    delta_each: DeltaEachOption = None,
    rho: RhoOption = None,
    categories: CategoriesOption = None,
    sensitivity: SensitivityOption = None,
    rate: RateOption = None,
    steps: StepsOption = "1",
    plot: Annotated[
        Path | None, FILE(help="Draw the curve into a .png, .svg or .pdf file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what any attacker must put up with: misses at every rate of false alarms.

    In the terminal:
    [bold]discreet tradeoff --noise-multiplier 4 --rate 0.01 --steps 10000[/bold]

    As a picture:
    [bold]discreet tradeoff -m laplace --noise-multiplier 2 --plot curve.png[/bold]
    """
    from discreet import accounting

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
        written = accounting.plot_tradeoff({described(mechanism, rate, steps): loss}, path=plot)
        if not as_json:
            say(Console(), f"Wrote {written}.")
            return
    columns = [i / (WIDTH - 1) for i in range(WIDTH)]
    misses = accounting.tradeoff(loss, false_positive_rates=[*columns, *SHOWN_RATES]).tolist()
    table = list(zip(SHOWN_RATES, misses[WIDTH:], strict=True))
    advantage = float(accounting.profile(loss, epsilons=[0])[0])
    if as_json:
        facts = {
            "advantage": advantage,
            "false_positive_rates": [*SHOWN_RATES, *columns],
            "false_negative_rates": [*misses[WIDTH:], *misses[:WIDTH]],
        }
        echo_json(facts)
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
