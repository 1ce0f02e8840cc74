"""Paying for steps: set aside before training, put on record before each batch is drawn."""

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from discreet.accounting import Loss, TruncatedPoissonLoss, from_json
from discreet.errors import LedgerError, ParameterError
from discreet.learn.choices.sampling import FullBatch, Poisson, Sampling
from discreet.learn.choices.stages import Noises
from discreet.learn.run.promise import Promise
from discreet.learn.run.settings import Training
from discreet.ledger import Account, Job
from discreet.noise import Source

if TYPE_CHECKING:
    from discreet.privacy import Unit

__all__ = ["Charges", "check_account"]


def check_account(account: Account, sampling: Sampling, *, grouped: bool, by: str | None) -> None:
    """Refuse an account that protects somebody else, or by another relation, than training does."""
    unit = account.unit
    together = sampling.together if isinstance(sampling, FullBatch | Poisson) else 1
    reason = _misfit(unit, together=together, grouped=grouped, by=by)
    if reason:
        raise ParameterError(
            f"account {account.name!r} protects {unit}. {reason} Nothing was spent.",
            parameter="units",
        )
    if account.neighbours is not sampling.neighbours:
        raise ParameterError(
            f"account {account.name!r} counts losses for {account.neighbours}, but "
            f"{type(sampling).__name__} is proved for {sampling.neighbours}. Nothing was spent. "
            "Poisson batches fit add_remove and zero_out, batches drawn with "
            "sampling='without_replacement' fit replace_one, sampling='full' fits all relations.",
            parameter="sampling",
        )


def _misfit(unit: "Unit", *, together: int, grouped: bool, by: str | None) -> str:
    """Say why a unit is not the one that batches are drawn by, or nothing."""
    if unit.period is not None:
        return "Training uses the data of all periods at once: charge an account without one."
    if unit.size != together:
        return (
            f"These batches have a proof for {together} at a time: use sampling='poisson' or "
            f"'full', by name or with together={unit.size}, or charge an account that protects one."
        )
    if unit.kind == "record" and grouped:
        # Taking a row from a user who stays changes that user's contribution by up to 2C.
        return "Drawing users does not protect single rows at this price: leave units= out."
    if unit.kind != "record" and not grouped:
        return f"Drawing single rows does not: pass units={unit.name!r}, or their ids."
    if by is not None and by != unit.name:
        return f"Batches would be drawn by {by!r}: pass units={unit.name!r}."
    return ""


@final
class Charges:
    """The reservations of one run in a ledger, found again by the run's name."""

    def __init__(self, account: Account, promise: Promise, jobs: list[Job], begun: Noises) -> None:
        self.account = account
        self.begun = Counter(begun)  # all that is on record, also those that were lost
        self._promise, self._jobs = promise, jobs

    @classmethod
    def reserve(cls, account: Account, promise: Promise, asked: Training) -> "Charges":
        """Set aside the steps of a new run."""
        job = account.reserve(
            promise.loss(promise.noises(0, promise.steps)),
            who=asked.who,
            purpose=asked.purpose,
            key=f"learn/{promise.run}/0",
            source=asked.source,
        )
        return cls(account, promise, [job], {})

    @classmethod
    def resume(cls, account: Account, promise: Promise, *, done: int, source: Source) -> "Charges":
        """Take up a run of which ``done`` steps are over, setting aside what is lacking.

        Steps that were paid for after the checkpoint was written are lost: their batches were
        drawn, so they stay paid, and repeating them is paid again.
        """
        reserved, over, begun = cls._found(account, promise)
        jobs = [account.resume(index) for index in reserved if index not in over]
        found = cls(account, promise, jobs, begun)
        missing = promise.noises(done, promise.steps)
        for noise in missing:
            missing[noise] -= sum(_left(found._step(noise), job) for job in jobs)
        if +missing:
            found.extend(+missing, source=source)
        return found

    @staticmethod
    def _found(
        account: Account, promise: Promise
    ) -> tuple[dict[int, dict[str, Any]], set[int], Counter[float]]:
        """Return a run's reservations, those of them that are over, and the steps begun."""
        prefix = f"key/{account.name}/learn/{promise.run}/"
        reserved: dict[int, dict[str, Any]] = {}
        noises: dict[int, list[float]] = {}  # of the parts of a reservation
        over: set[int] = set()
        begun: Counter[float] = Counter()
        first = promise.noise_multiplier.at(0)  # all there was before there were stages
        noise_of = {
            part: noise
            for noise in promise.noise_multiplier.values
            for part in _forms(promise.sampling.loss(noise_multiplier=noise))
        }
        for entry in account.history():
            kind, job = entry["kind"], entry.get("job")
            if kind == "reserve" and entry["key"].startswith(prefix):
                reserved[entry["index"]] = entry
                parts = from_json(json.dumps(entry["loss"])).parts
                noises[entry["index"]] = [noise_of.get(part, first) for part, _ in parts]
            elif kind == "spend" and job in reserved:
                for noise, steps in zip(noises[entry["job"]], entry["steps"], strict=True):
                    begun[noise] += steps
            elif kind == "settle" and job in reserved:
                over.add(job)
        if not reserved:
            raise LedgerError(
                f"account {account.name!r} has no reservation of this run. Pass the account, in "
                "the ledger, that the run was begun with."
            )
        return reserved, over, +begun

    def extend(self, noises: Noises, *, source: Source) -> None:
        """Set aside further steps, for whom and what the first ones were."""
        promise = self._promise
        reserved, _, _ = self._found(self.account, promise)
        first = next(iter(reserved.values()))
        job = self.account.reserve(
            promise.loss(noises),
            who=first["who"],
            purpose=first["purpose"],
            key=f"learn/{promise.run}/{len(reserved)}",
            source=source,
        )
        self._jobs.append(job)

    @property
    def indices(self) -> list[int]:
        """The entries of the reservations that are open."""
        return [job.index for job in self._jobs]

    def begin(self, noise: float) -> None:
        """Put on record, durably, that a step with this noise begins: before touching the data."""
        step = self._step(noise)
        for job in self._jobs:
            if _left(step, job):
                job.spend(_as_reserved(step, job))
                self.begun[noise] += 1
                return
        raise LedgerError("every step that was reserved has begun.")

    def close(self) -> None:
        """Give back what never began."""
        for job in self._jobs:
            job.close()

    def _step(self, noise: float) -> Loss:
        return self._promise.sampling.loss(noise_multiplier=noise)


def _forms(step: Loss) -> tuple[Loss, ...]:
    """Return how a ledger may have written a step: earlier ones do not say how batches are cut."""
    if isinstance(step, TruncatedPoissonLoss):
        return replace(step, uniform=False), step
    return (step,)


def _as_reserved(step: Loss, job: Job) -> Loss:
    """Return a step as its job has it."""
    *others, form = _forms(step)
    return next((other for other in others if other in dict(job.receipt.loss.parts)), form)


def _left(step: Loss, job: Job) -> int:
    """Return how many such steps of a job have not begun."""
    return job.left_of(_as_reserved(step, job))
