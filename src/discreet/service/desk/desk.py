"""The desk: who asks what of which dataset, answered within the budget and in public time."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar, final

from discreet.errors import AccountNotFound, BudgetExceeded, DataError, ParameterError
from discreet.service.desk.public_time import OnPaid, OnReady, PublicTime
from discreet.service.desk.queue import FairQueue
from discreet.service.desk.rest import MissCounter, Rest
from discreet.service.desk.shelf import Served, Shelf
from discreet.service.identity.login import Login, Role
from discreet.tables import Offer, Protected, Quote, Result, Workload

__all__ = ["PURPOSE", "Desk", "degraded"]

T = TypeVar("T")
PURPOSE: Final = "analysis"
_LEAST: Final = 1e-9  # an epsilon for which any answer on record is exact enough
_UNREADABLE: Final = (
    "this dataset cannot be read at the moment. Nothing was spent. A custodian finds the reason "
    "in the gateway's log."
)
_logger = logging.getLogger("discreet.service")


@final
class Desk:
    """Answers logins: what they may see, what a question costs, and the answer.

    Belongs to one event loop; what blocks runs in ``pool``. The name that a ledger gets is that of
    the login, whatever the offer says.
    """

    def __init__(
        self,
        shelf: Shelf,
        time: PublicTime,
        pool: Executor,
        misses: MissCounter,
        *,
        most_misses: int,
        slots: int,
        waiting: int,
    ) -> None:
        self.shelf, self.time, self._pool = shelf, time, pool
        self._rest = Rest(misses, most=most_misses)
        self._free_of_charge = FairQueue(slots=slots, waiting=waiting)

    def visible(self, login: Login) -> list[str]:
        """Return the names of the datasets that a login may see."""
        return [name for name in self.shelf.names if login.sees(name)]

    def served(self, login: Login, dataset: str) -> Served:
        """Return a dataset that a login may see; others are not told from those that are not."""
        if not login.sees(dataset):
            raise AccountNotFound("there is no dataset of this name that this login may see.")
        return self.shelf[dataset]

    def tables(self, login: Login, dataset: str) -> Mapping[str, Mapping[str, str]]:
        """Return the columns of every table of a dataset, with their types."""
        return self.served(login, dataset).tables.tables

    async def version(self, login: Login, dataset: str) -> str:
        """Return the version that a dataset's data has now."""
        tables = self.served(login, dataset).tables

        def looked() -> str:
            tables.refresh()
            return tables.version

        return await self.free(looked, login)

    def remaining(self, login: Login, dataset: str) -> float:
        """Return the share of a dataset's budget that is left."""
        return self.served(login, dataset).tables.remaining

    async def quote(self, login: Login, dataset: str, question: str, offer: Offer) -> Quote:
        """Say what a question costs and how far off its answer would be. Free."""
        tables = self._asked(login, dataset)
        return await self.free(lambda: tables.quote(question, _named(offer, login)), login)

    async def columns(
        self,
        login: Login,
        dataset: str,
        question: str,
        *,
        errors: bool = False,
        periods: Sequence[str] | None = None,
    ) -> Mapping[str, str]:
        """Return the columns that an answer would have, with their types. Free."""
        tables = self._asked(login, dataset)
        return await self.free(
            lambda: tables.columns(question, errors=errors, periods=periods), login
        )

    async def answer(
        self, login: Login, dataset: str, question: str, offer: Offer, *, degrade: bool = False
    ) -> Result:
        """Pay and answer. ``degrade`` takes more noise where that is all that fits.

        That is only where the dataset's policy is to degrade; a quote tells the price before.
        """
        tables, named = self._asked(login, dataset), _named(offer, login)

        def ask(on_paid: OnPaid, on_ready: OnReady) -> Result:
            try:
                return tables.sql(question, named, on_paid=on_paid, on_ready=on_ready)
            except BudgetExceeded:
                if not degrade or tables.account.policy != "degrade":
                    raise
                noisier = degraded(tables, question, named)
                return tables.sql(question, noisier, on_paid=on_paid, on_ready=on_ready)
            except ParameterError as refusal:
                if not degrade or refusal.parameter != "key":
                    raise
                return _recalled(tables, question, named)

        return await self._in_time(ask, login, dataset)

    async def plan(
        self,
        login: Login,
        dataset: str,
        questions: Sequence[str],
        offer: Offer,
        *,
        weights: Sequence[float] | None = None,
    ) -> Workload:
        """Price many questions together. Free."""
        tables = self._asked(login, dataset)
        return await self.free(
            lambda: tables.plan(questions, _named(offer, login), weights=weights), login
        )

    async def release(self, login: Login, dataset: str, workload: Workload) -> list[Result]:
        """Pay for a planned workload and answer all of it."""
        self._asked(login, dataset)

        def release(on_paid: OnPaid, on_ready: OnReady) -> list[Result]:
            return workload.release(on_paid=on_paid, on_ready=on_ready)

        return await self._in_time(release, login, dataset)

    async def free(self, work: Callable[[], T], login: Login) -> T:
        """Run what costs nothing and touches no data, beside the event loop and in turns."""
        async with self._free_of_charge.turn(login.who):
            loop = asyncio.get_running_loop()
            try:
                return await loop.run_in_executor(self._pool, work)
            except DataError as error:
                raise self._unreadable(error) from None

    def _asked(self, login: Login, dataset: str) -> Protected:
        login.needs([Role.ANALYST])
        return self.served(login, dataset).tables

    async def _in_time(self, work: Callable[[OnPaid, OnReady], T], login: Login, dataset: str) -> T:
        seconds = self.shelf[dataset].seconds
        if seconds and not self._rest.refuse_from_memory(dataset):
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._pool, self._rest.refuse, dataset)

        def unless_at_rest(on_paid: OnPaid, on_ready: OnReady) -> T:
            # Again when its turn has come: those before it in the queue may have missed.
            if seconds:
                self._rest.refuse(dataset)
            return work(on_paid, on_ready)

        try:
            return await self.time.run(
                unless_at_rest,
                who=login.who,
                seconds=seconds,
                on_miss=partial(self._missed, dataset),
            )
        except DataError as error:
            raise self._unreadable(error) from None

    def _missed(self, dataset: str) -> None:
        """Count a miss and alarm the custodian. Which question it was may tell too much."""
        _logger.warning(json.dumps({"event": "missed", "dataset": dataset}, sort_keys=True))
        self._rest.missed(dataset)
        self._pool.submit(self._rest.write, dataset)

    def _unreadable(self, error: DataError) -> DataError:
        """Keep what a source said, which may name places, for the custodian's log."""
        told = {"event": "unreadable", "why": str(error)}
        _logger.error(json.dumps(told, sort_keys=True))
        return DataError(_UNREADABLE)


def _named(offer: Offer, login: Login) -> Offer:
    """Return an offer in the name of the login; two logins with one key are two requests.

    Whatever names and keys are like, and however long: the ledger has keys of its own, such as
    ``release/7``, and none of more than 200 characters.
    """
    key = None
    if offer.key is not None:
        told = f"{len(login.who)}/{login.who}/{offer.key}"
        key = f"request/{sha256(told.encode()).hexdigest()}"
    return replace(offer, who=login.who, purpose=offer.purpose or PURPOSE, key=key)


def _recalled(tables: Protected, question: str, offer: Offer) -> Result:
    """Return what was answered with more noise than was asked for, to a key that has paid for it.

    Nothing is charged, whatever the price: the key was charged another one.
    """
    try:
        return tables.sql(question, replace(offer, epsilon=_LEAST, share=None, within=None))
    except ParameterError as refusal:
        if refusal.parameter != "key":
            raise
    raise ParameterError(
        "this key belongs to another request, or to this one, and its answer was lost after the "
        "charge. Nothing was spent. Use a new key for each request, and the same one only to "
        "repeat it.",
        parameter="key",
    )


def degraded(tables: Protected, question: str, offer: Offer) -> Offer:
    """Return the offer with the largest epsilon that still fits."""
    fits = tables.quote(question, offer).fits_up_to
    if fits is None:
        return offer  # refused again, with the reason
    return replace(offer, epsilon=fits, share=None, within=None)
