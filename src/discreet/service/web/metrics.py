"""Numbers for Prometheus that follow from public facts: requests by outcome, queues, shares.

How long answers took is told only where they are given at public times, and so not before those.
Several workers of one host add their numbers up through the folder that
``PROMETHEUS_MULTIPROC_DIR`` names.
"""

import os
from typing import TYPE_CHECKING, Final, final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

if TYPE_CHECKING:
    from discreet.service.desk.gateway import Gateway

__all__ = ["MEDIA_TYPE", "Metrics"]

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@final
class Metrics:
    """The numbers of one worker, and of all of them when asked."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._served = Counter(
            "discreet_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "discreet_answer_seconds",
            "Seconds until newly paid answers were told, none of them before its public time.",
            ["dataset"],
            registry=self._registry,
            buckets=_SECONDS,
        )
        self._counters: dict[tuple[str, int], Counter] = {}
        self._busy = self._gauge("discreet_answers_under_way", "Answers under way.", "livesum")
        self._waiting = self._gauge("discreet_questions_waiting", "Questions waiting.", "livesum")
        self._used = Gauge(
            "discreet_budget_used_share",
            "Share of a dataset's budget that is used.",
            ["dataset"],
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._misses = Gauge(
            "discreet_missed_answers",
            "Answers that were not ready in time, since the dataset was last reopened.",
            ["dataset"],
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._entries = self._gauge("discreet_ledger_entries", "Entries.", "mostrecent")

    def _gauge(self, name: str, told: str, mode: str) -> Gauge:
        return Gauge(name, told, registry=self._registry, multiprocess_mode=mode)  # type: ignore[arg-type]

    def served(self, route: str, status: int) -> None:
        """Count a request."""
        known = self._counters.get((route, status))
        if known is None:  # looking one up by its labels takes longer than counting
            known = self._counters[route, status] = self._served.labels(route, str(status))
        known.inc()

    def answered(self, dataset: str, seconds: float) -> None:
        """Take note of an answer that was told at a public time: it shows how long others wait."""
        self._seconds.labels(dataset).observe(seconds)

    def page(self, gateway: "Gateway") -> bytes:
        """Return the page that Prometheus reads."""
        queue = gateway.desk.time.queue
        self._busy.set(queue.busy)
        self._waiting.set(queue.length)
        self._entries.set(gateway.shelf.ledger.size)
        for served in gateway.shelf:
            name = served.tables.name
            self._used.labels(name).set(1 - served.tables.remaining)
            self._misses.labels(name).set(gateway.misses.count(name))
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
