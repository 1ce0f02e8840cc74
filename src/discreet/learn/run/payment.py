"""Paying for steps: set aside before training, put on record before each batch is drawn."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from discreet.accounting import Loss, TruncatedPoissonLoss
from discreet.errors import LedgerError, ParameterError
from discreet.learn.choices.sampling import FullBatch, Poisson, Sampling
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

    def __init__(self, account: Account, step: Loss, jobs: list[Job], begun: int) -> None:
        self.account = account
        self.begun = begun  # steps on record, over all reservations, also those that were lost
        self._step, self._jobs = step, jobs

    @classmethod
    def reserve(cls, account: Account, promise: Promise, asked: Training) -> "Charges":
        """Set aside the steps of a new run."""
        job = account.reserve(
            promise.step_loss * promise.steps,
            who=asked.who,
            purpose=asked.purpose,
            key=f"learn/{promise.run}/0",
            source=asked.source,
        )
        return cls(account, promise.step_loss, [job], 0)

    @classmethod
    def resume(cls, account: Account, promise: Promise, *, steps: int, source: Source) -> "Charges":
        """Take up a run that has ``steps`` to go, setting aside what its reservations lack.

        Steps that were paid for after the checkpoint was written are lost: their batches were
        drawn, so they stay paid, and repeating them is paid again.
        """
        reserved, over, begun = cls._found(account, promise)
        jobs = [account.resume(index) for index in reserved if index not in over]
        found = cls(account, promise.step_loss, jobs, begun)
        missing = steps - sum(job.left for job in jobs)
        if missing > 0:
            found.extend(promise, steps=missing, source=source)
        return found

    @staticmethod
    def _found(
        account: Account, promise: Promise
    ) -> tuple[dict[int, dict[str, Any]], set[int], int]:
        """Return a run's reservations, those of them that are over, and the steps begun."""
        prefix = f"key/{account.name}/learn/{promise.run}/"
        reserved: dict[int, dict[str, Any]] = {}
        over: set[int] = set()
        begun = 0
        for entry in account.history():
            kind, job = entry["kind"], entry.get("job")
            if kind == "reserve" and entry["key"].startswith(prefix):
                reserved[entry["index"]] = entry
            elif kind == "spend" and job in reserved:
                begun += sum(entry["steps"])
            elif kind == "settle" and job in reserved:
                over.add(job)
        if not reserved:
            raise LedgerError(
                f"account {account.name!r} has no reservation of this run. Pass the account, in "
                "the ledger, that the run was begun with."
            )
        return reserved, over, begun

    def extend(self, promise: Promise, *, steps: int, source: Source) -> None:
        """Set aside further steps, for whom and what the first ones were."""
        reserved, _, _ = self._found(self.account, promise)
        first = next(iter(reserved.values()))
        job = self.account.reserve(
            promise.step_loss * steps,
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

    def begin(self) -> None:
        """Put on record, durably, that a step begins. Touch the data only after this."""
        for job in self._jobs:
            if job.left:
                job.spend(_as_reserved(self._step, job))
                self.begun += 1
                return
        raise LedgerError("every step that was reserved has begun.")

    def close(self) -> None:
        """Give back what never began."""
        for job in self._jobs:
            job.close()


def _as_reserved(step: Loss, job: Job) -> Loss:
    """Return a step as its job has it: earlier ones do not say how batches are cut."""
    if not isinstance(step, TruncatedPoissonLoss):
        return step
    silent = replace(step, uniform=False)
    return silent if silent in dict(job.receipt.loss.parts) else step
