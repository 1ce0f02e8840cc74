"""What the commands of ``discreet train`` are asked for: refused early, or done and told."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from rich.console import Console

from discreet._exact import Number, positive, probability, whole
from discreet.cli.numbers import parse
from discreet.cli.train import show
from discreet.cli.train.evaluations import Evaluation
from discreet.cli.train.runs import Experiment, carry_out, need_torch
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.learn.recipes import EncodedRows, Encoding
    from discreet.ledger import Account

__all__ = ["TrainRequest", "train_and_tell", "whole_number"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What training on a table and on images have in common, as it was typed."""

    epsilon: str | None
    epsilons: str | None
    delta: str
    epochs: str
    batch_size: str
    clip: str | None
    learning_rate: str | None
    population: str | None
    compare: bool
    allow_non_private: bool
    out: Path | None
    plot: Path | None
    who: str | None
    purpose: str
    as_json: bool

    def __post_init__(self) -> None:
        need_torch()
        kept = self.kept
        probability(parse(self.delta), name="delta", hint="Gaussian noise needs a delta above 0.")
        positive(parse(self.epochs), name="epochs")
        whole(parse(self.batch_size), name="batch_size")
        for name in ("clip", "learning_rate"):
            if getattr(self, name) is not None:
                positive(parse(getattr(self, name)), name=name)
        whole_number(self.population, "population")
        show.check_plot(self.plot)
        show.check_place(self.out, "out")
        if self.out is not None and kept is None:
            raise ParameterError(
                "say whose model --out shall keep, with --epsilon.", parameter="epsilon"
            )

    @classmethod
    def of(cls, typed: Mapping[str, Any]) -> "TrainRequest":
        """Return the request of a command, from all that was typed."""
        return cls(**{field.name: typed[field.name] for field in fields(cls)})

    @property
    def _asked(self) -> list[Number]:
        found = [parse(one.strip()) for one in (self.epsilons or "").split(",") if one.strip()]
        if self.epsilon is not None:
            found.append(parse(self.epsilon))
        for one in found:
            positive(one, name="epsilon")
        if not found:
            raise ParameterError(
                "say how private the model shall be, with --epsilon 1, or compare with "
                "--epsilons 0.5,1,3.",
                parameter="epsilon",
            )
        return found

    @property
    def budgets(self) -> list[Number]:
        """All epsilons, in ascending order."""
        return sorted(dict.fromkeys(self._asked))

    @property
    def kept(self) -> Number | None:
        """The epsilon whose model is kept: the one that was asked for, or the only one."""
        asked = self._asked
        return asked[-1] if self.epsilon is not None or len(asked) == 1 else None

    def experiment(
        self,
        model: str,
        *,
        classes: int,
        account: "Account | None",
        who: str,
        population: int | None,
        unit: str | None = None,
        rows_per_unit: int = 1,
    ) -> Experiment:
        """Return the experiment that was asked for, on data and an account that were opened."""
        from discreet.learn import recipes

        known = {one.name: one for one in (recipes.LOGISTIC, recipes.MLP, recipes.CNN)}
        return Experiment(
            recipe=known[model],
            classes=classes,
            clip=None if self.clip is None else parse(self.clip),
            learning_rate=None if self.learning_rate is None else parse(self.learning_rate),
            unit=unit,
            epochs=parse(self.epochs),
            batch_size=whole(parse(self.batch_size), name="batch_size"),
            training={
                "delta": parse(self.delta),
                "account": account,
                "who": who,
                "purpose": self.purpose,
                "population": population,
                "rows_per_unit": rows_per_unit,
                "progress": False if self.as_json else None,
            },
        )

    def require_judge(self, is_judged: bool, *, remedy: str) -> None:
        """Refuse to compare models by nothing."""
        if not is_judged and (self.compare or len(self.budgets) > 1 or self.plot is not None):
            raise ParameterError(
                "models are compared by their accuracy, and an accuracy on private data is a "
                f"release of its own. Nothing was spent. Give {remedy}.",
                parameter="held_out",
            )

    def refuse_twin(self, what: str) -> None:
        """Refuse to train on protected data without privacy, unless that was allowed."""
        if self.compare and not self.allow_non_private:
            raise ParameterError(
                f"--compare would train a model without privacy on {what}: NOT PRIVATE, and no "
                "budget can pay for it. Nothing was spent. Compare budgets with --epsilons alone; "
                "or, if nobody but the owner of the data will see it, say --allow-non-private.",
                parameter="compare",
            )


def train_and_tell(
    request: TrainRequest,
    experiment: Experiment,
    rows: "EncodedRows",
    evaluation: Evaluation | None,
    *,
    on: str,
    encoding: "Encoding | None" = None,
) -> None:
    """Make the runs; write, draw and print what was asked for."""
    runs = carry_out(
        experiment, rows, epsilons=request.budgets, twin=request.compare, evaluation=evaluation
    )
    if request.out is not None:
        kept = next(run for run in runs if run.epsilon == request.kept)
        facts = {"encoding": encoding, "shape": rows.matrix.shape[1:]}
        show.write_model(request.out, kept, experiment, facts)
    if request.plot is not None:
        show.draw_runs(request.plot, runs, on=on)
    if request.as_json:
        show.echo_runs(runs, experiment, evaluation, on=on)
    else:
        show.print_runs(Console(), runs, experiment, evaluation, on=on)


def whole_number(text: str | None, name: str) -> int | None:
    """Read a number that may be left out.

    >>> whole_number("12", "population"), whole_number(None, "population")
    (12, None)
    """
    return None if text is None else whole(parse(text), name=name)
