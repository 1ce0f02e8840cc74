"""Differencing and reconstruction on generated people, without protection and with it."""

from collections.abc import Mapping
from functools import lru_cache, partial
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from discreet._json import read_json
from discreet.attacks import AttackReport, differencing, reconstruction
from discreet.datasets import salaries
from discreet.mechanisms import Gaussian
from discreet.privacy import Guarantee, success
from discreet.service.pages.areas.gallery.drawing import AddressSource, chosen, computed
from discreet.service.pages.page import PageCall
from discreet.tables import protect

__all__ = ["difference", "reconstruct"]

_EMPLOYEES: Final = 100
_ASKED: Final = 10
_BOUNDS: Final = (0, 200_000)
_MINIMUMS: Final = ("1", "5", "10", "20")
_ROUNDINGS: Final = ("0", "100", "1000", "10000")
_EPSILONS: Final = ("0.1", "0.5", "1", "2", "5")
_PEOPLE: Final = ("32", "64", "128")
_QUESTIONS: Final = ("32", "64", "128", "256", "512")
_DELTA: Final = 1e-6


async def difference(call: PageCall) -> Mapping[str, Any]:
    """Attack salaries behind a home-made protection, and behind a budget."""
    minimum = chosen(call, "minimum", _MINIMUMS, "10")
    rounding = chosen(call, "rounding", _ROUNDINGS, "0")
    epsilon = chosen(call, "epsilon", _EPSILONS, "1")
    return {
        "minimum": minimum,
        "rounding": rounding,
        "epsilon": epsilon,
        "minimums": _MINIMUMS,
        "roundings": _ROUNDINGS,
        "epsilons": _EPSILONS,
        "before": await computed(partial(_guarded, int(minimum), int(rounding))),
        "after": await computed(partial(_protected, float(epsilon))),
    }


async def reconstruct(call: PageCall) -> Mapping[str, Any]:
    """Attack secret bits behind counts with some noise, and with the noise of a budget."""
    people = chosen(call, "people", _PEOPLE, "64")
    questions = chosen(call, "questions", _QUESTIONS, "256")
    noise = round(call.number("noise", 2.0, least=0, most=30), 1)
    epsilon = chosen(call, "epsilon", _EPSILONS, "1")
    work = partial(_rebuilt, int(people), int(questions), noise, float(epsilon))
    return {
        "people": people,
        "questions": questions,
        "noise": noise,
        "epsilon": epsilon,
        "peoples": _PEOPLE,
        "question_counts": _QUESTIONS,
        "epsilons": _EPSILONS,
        **await computed(work),
    }


def _payroll() -> tuple[Mapping[str, Any], dict[int, int], dict[str, Any]]:
    """Return the salaries, those under attack, and what the attacker knows."""
    payroll = salaries(_EMPLOYEES)
    every = range(0, _EMPLOYEES, _EMPLOYEES // _ASKED)
    targets = {at: int(payroll["salary"][at]) for at in every}
    known = {"table": "payroll", "key": "employee_id", "keys": (0, _EMPLOYEES - 1),
             "secret": "salary", "bounds": _BOUNDS, "tolerance": 1000}  # fmt: skip
    return payroll, targets, known


@lru_cache(maxsize=len(_MINIMUMS) * len(_ROUNDINGS))
def _guarded(minimum: int, rounding: int) -> dict[str, Any]:
    payroll, targets, known = _payroll()
    desk = differencing.Guarded(payroll, name="payroll", minimum=minimum, rounding=rounding)
    return _told(differencing.run(desk, targets, times=30, **known)) | {"asked": desk.questions}


@lru_cache(maxsize=len(_EPSILONS))
def _protected(epsilon: float) -> dict[str, Any]:
    payroll, targets, known = _payroll()
    with (
        TemporaryDirectory() as place,
        protect(
            payroll,
            name="payroll",
            unit="employee_id",
            rows=1,
            guarantee=Guarantee(epsilon=epsilon, delta=_DELTA),
            ledger=Path(place) / "budget.db",
            columns={"salary": {"bounds": _BOUNDS}},
        ) as tables,
    ):
        return _told(differencing.run(tables, targets, **known)) | {"asked": len(targets)}


@lru_cache(maxsize=256)
def _rebuilt(people: int, questions: int, noise: float, epsilon: float) -> dict[str, Any]:
    drawn = AddressSource(f"who of {people}").read(people)
    secret = np.argsort(np.frombuffer(drawn, np.uint8), kind="stable") % 2  # half have it
    before = reconstruction.run(
        secret, reconstruction.count_subsets(secret, noise=noise), questions=questions
    )
    # All counts together are one vector: whoever's bit flips moves each by one at most.
    guarantee = Guarantee(epsilon=epsilon, delta=_DELTA)
    paid = Gaussian.calibrated(epsilon=epsilon, delta=_DELTA, sensitivity=sqrt(questions))
    source = AddressSource(f"reconstruct {people} {questions} {epsilon}")

    def ask(subset: Any, /) -> float:
        return paid.release(float(secret[subset].sum()), source=source)

    after = reconstruction.run(secret, ask, questions=questions)
    return {
        "before": _told(before) | {"noise": noise},
        "after": _told(after)
        | {"noise": paid.sigma, "allowed": success(guarantee, prior=after.baseline)},
    }


def _told(report: AttackReport) -> dict[str, Any]:
    """Return a report as JSON holds it."""
    told: dict[str, Any] = read_json(report.to_json())
    return told
