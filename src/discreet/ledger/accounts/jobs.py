"""Long jobs: everything they may cost is set aside first, and what never began comes back."""

from typing import TYPE_CHECKING, final

from discreet._exact import whole
from discreet._json import read_json
from discreet.accounting import Loss
from discreet.errors import LedgerError, ParameterError, SessionOver
from discreet.ledger.receipts import Receipt

if TYPE_CHECKING:
    from discreet.ledger.accounts.account import Account

__all__ = ["Job", "resume"]


@final
class Job:
    """A reservation under way; :meth:`discreet.ledger.Account.reserve` makes one.

    Each step is on record as begun before it touches data. Leaving the ``with`` block normally
    ends the job and gives back the steps that never began; so leave it by a decision made from
    public facts or released outputs. Leaving it by an exception gives nothing back: when a job
    breaks may depend on the data. It stays open, and :meth:`discreet.ledger.Account.resume` takes
    it up again.

    >>> from discreet.accounting import GaussianLoss
    >>> from discreet.testing import temporary_account
    >>> step = GaussianLoss(noise_multiplier=100)
    >>> with temporary_account(epsilon=3, delta=1e-6) as account:
    ...     with account.reserve(step * 1000, who="trainer", purpose="model") as job:
    ...         before = account.used
    ...         for _ in range(10):
    ...             job.spend(step)  # and only now touch the data
    ...     account.used < before / 50
    True
    """

    def __init__(self, account: "Account", receipt: Receipt, left: list[int]) -> None:
        self._account = account
        self.receipt = receipt
        self._parts = [part for part, _ in receipt.loss.parts]
        self._left = left
        self._is_open = True

    @property
    def index(self) -> int:
        """The entry that reserved it, by which it can be resumed."""
        return self.receipt.index

    @property
    def left(self) -> int:
        """How many steps have not begun."""
        return sum(self._left)

    def left_of(self, step: Loss) -> int:
        """Return how many steps of this loss have not begun.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> first, second = PureLoss(epsilon=0.1), PureLoss(epsilon=0.2)
        >>> with temporary_account(epsilon=1) as account:
        ...     job = account.reserve(first * 3 + second, who="ana", purpose="model")
        ...     job.left, job.left_of(first), job.left_of(PureLoss(epsilon=0.3))
        (4, 3, 0)
        """
        return dict(zip(self._parts, self._left, strict=True)).get(step, 0)

    @property
    def is_open(self) -> bool:
        """Whether it can still spend."""
        return self._is_open

    def spend(self, loss: Loss) -> None:
        """Put on record that a step, or several of them, begins now. See the class.

        ``loss`` is the loss of one step as it was reserved, or a multiple of it: fewer entries,
        but a crash then wastes more.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     job = account.reserve(PureLoss(epsilon=0.1) * 9, who="ana", purpose="model")
        ...     job.spend(PureLoss(epsilon=0.1) * 2)
        ...     job.left
        7
        """
        if not self._is_open:
            raise SessionOver("this job has ended. Reserve another one.")
        steps = self._counted(loss)
        entry = {"kind": "spend", "job": self.index, "steps": steps}
        self._account._append(entry)
        self._left = [have - n for have, n in zip(self._left, steps, strict=True)]

    def close(self) -> None:
        """End the job and give back what never began. Calling it twice does no harm.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     job = account.reserve(PureLoss(epsilon=0.1) * 9, who="ana", purpose="model")
        ...     job.close()
        ...     account.used
        0.0
        """
        if self._is_open:
            self._account._append(
                {"kind": "settle", "job": self.index, "key": f"settle/{self.index}"}
            )
            self._is_open = False

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        self._is_open = False

    def __repr__(self) -> str:
        return f"Job(index={self.index}, left={self.left}, is_open={self._is_open})"

    def _counted(self, loss: object) -> list[int]:
        steps = [0] * len(self._parts)
        for part, times in loss.parts if isinstance(loss, Loss) else ((loss, 1),):
            if part not in self._parts:
                raise ParameterError(
                    "this is not a step of what was reserved. Nothing was spent. Reserve a sum of "
                    "steps, such as step * 1000, and spend step or a multiple of it.",
                    parameter="loss",
                )
            steps[self._parts.index(part)] += times
        return steps


def resume(account: "Account", index: int) -> Job:
    """See :meth:`discreet.ledger.Account.resume`."""
    index = whole(index, name="index", minimum=0)
    fact = f"job/{index}"
    with account._session.read() as snapshot:
        job = read_json(snapshot.facts([fact]).get(fact, "null"))
        is_open = job is not None and job["account"] == account.name and "over" not in job
        row = snapshot.row(index) if is_open else None
        if row is not None:
            return Job(account, Receipt(bodies=(row.body,)), job["left"])
    raise LedgerError(
        f"entry {index} is no open job of account {account.name!r}. It is over, or belongs to "
        "another account."
    )
