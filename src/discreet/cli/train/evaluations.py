"""How the models of ``discreet train`` are judged: on public rows for free, or for a price."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

from discreet._exact import show

if TYPE_CHECKING:
    from torch import nn

    from discreet.learn.recipes import Accuracy, EncodedRows, PrivateAccuracy
    from discreet.ledger import Account, Job

__all__ = ["Evaluation", "OnPrivate", "OnPublic"]


class Evaluation(Protocol):
    """How a model is judged, and on whom."""

    @property
    def words(self) -> str:
        """On whom, to be printed."""
        ...

    def begin(self, models: int, /) -> None:
        """Set aside what judging so many models costs, or raise."""
        ...

    def accuracy(self, model: "nn.Module", /) -> "Accuracy":
        """Judge a model."""
        ...

    def close(self) -> None:
        """Give back what was not used."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OnPublic:
    """Judge models on rows that were declared public: free, and exact."""

    rows: "EncodedRows"
    words: str

    def begin(self, models: int, /) -> None:
        """Nothing: it is free."""

    def close(self) -> None:
        """Nothing: it is free."""

    def accuracy(self, model: "nn.Module", /) -> "Accuracy":
        from discreet.learn.recipes import NO_LABEL, Accuracy

        return Accuracy.on_public(model, self.rows.take(self.rows.labels != NO_LABEL))


@final
class OnPrivate:
    """Judge models on private rows, with noise, each time for a price that was set aside."""

    def __init__(
        self,
        rows: "EncodedRows",
        mechanism: "PrivateAccuracy",
        account: "Account",
        *,
        who: str,
        purpose: str,
    ) -> None:
        self._rows, self._mechanism, self._account = rows, mechanism, account
        self._who, self._purpose = who, purpose
        self._job: Job | None = None

    @property
    def words(self) -> str:
        """On whom."""
        return (
            f"a random tenth of the units, kept out of training, with noise for "
            f"epsilon={show(self._mechanism.epsilon)} each"
        )

    def begin(self, models: int, /) -> None:
        """Set aside what judging so many models costs."""
        loss = self._mechanism.loss * models
        self._job = self._account.reserve(loss, who=self._who, purpose=self._purpose)

    def close(self) -> None:
        """Give back what was not used."""
        if self._job is not None:
            self._job.close()

    def accuracy(self, model: "nn.Module", /) -> "Accuracy":
        from discreet.learn.recipes import NO_LABEL, correct

        assert self._job is not None  # begun
        self._job.spend(self._mechanism.loss)  # before the rows are touched
        rows = self._rows.take(self._rows.labels != NO_LABEL)
        return self._mechanism.release(correct(model, rows), units=rows.units)
