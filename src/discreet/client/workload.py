"""Many questions that a gateway prices together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from discreet.client.answers import read_answer
from discreet.client.problems import shown
from discreet.client.transport import GatewayCall, Wire
from discreet.errors import DiscreetError
from discreet.tables import Expected, Result

__all__ = ["RemoteQuote", "RemoteWorkload", "read_workload"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteQuote:
    """Whether a workload fits into all budgets that it draws on; true where it does.

    >>> bool(RemoteQuote(fits=True, epsilon=0.5, delta=0))
    True
    """

    fits: bool
    epsilon: float
    delta: float

    def __bool__(self) -> bool:
        return self.fits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWorkload:
    """Questions with one price at a gateway; nothing is spent before :meth:`release`.

    ``releases`` is how many releases answer them, ``expected`` how far off each aggregate of each
    question would be.

    >>> from discreet.client.example import ExampleGateway
    >>> with ExampleGateway() as gateway:
    ...     asked = ["SELECT COUNT(*) AS n FROM people", "SELECT AVG(age) AS age FROM people"]
    ...     workload = gateway.tables().plan(asked, epsilon=0.5)
    ...     workload.quote.fits, workload.releases, len(workload.expected)
    (True, 1, 2)
    """

    epsilon: float
    delta: float
    questions: tuple[str, ...]
    releases: int
    expected: tuple[tuple[Expected, ...], ...]
    fits: bool
    text: str = field(repr=False)
    call: GatewayCall = field(repr=False)
    wire: Wire = field(repr=False, compare=False)

    @property
    def quote(self) -> RemoteQuote:
        """Whether all of it fitted into the budget when it was planned."""
        return RemoteQuote(fits=self.fits, epsilon=self.epsilon, delta=self.delta)

    def __str__(self) -> str:
        return self.text

    def release(self) -> list[Result]:
        """Pay for all and answer all, in the order in which they were asked.

        Refused as a whole where it does not fit by now.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     workload = gateway.tables().plan(["SELECT COUNT(*) AS n FROM people"], epsilon=1)
        ...     [answer.columns for answer in workload.release()]
        [('n',)]
        """
        document = self.wire.call(self.call)
        try:
            answers = [read_answer(one, is_view=True) for one in document["answers"]]
        except (KeyError, TypeError):
            raise _no_plan() from None
        if len(answers) != len(self.questions):
            raise _no_plan()
        return answers


def read_workload(
    document: Mapping[str, Any], *, questions: list[str], call: GatewayCall, wire: Wire
) -> RemoteWorkload:
    """Rebuild a workload from what a gateway says; ``call`` is what releases it.

    >>> read_workload({}, questions=[], call=GatewayCall("POST", "/"), wire=None)
    Traceback (most recent call last):
        ...
    discreet.errors.DiscreetError: the gateway sent something that is no plan.
    """
    try:
        return RemoteWorkload(
            epsilon=float(document["epsilon"]),
            delta=float(document["delta"]),
            questions=tuple(questions),
            releases=int(document["releases"]),
            expected=tuple(tuple(Expected(**one) for one in each) for each in document["expected"]),
            fits=document["fits"] is True,
            text=shown(document["text"]),
            call=call,
            wire=wire,
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _no_plan() from None


def _no_plan() -> DiscreetError:
    return DiscreetError("the gateway sent something that is no plan.")
