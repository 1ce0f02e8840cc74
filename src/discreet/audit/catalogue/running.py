"""Run the catalogue, in several processes if wanted."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from discreet._exact import Number, probability, whole
from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.audit.catalogue.report import CatalogueLine, CatalogueReport
from discreet.errors import ParameterError

__all__ = ["run_catalogue"]


def run_catalogue(
    entries: Sequence[CatalogueEntry],
    *,
    samples: int | None = None,
    false_alarm: Number = 1e-6,
    processes: int = 1,
    tell: Callable[[CatalogueLine], object] | None = None,
) -> CatalogueReport:
    """Audit all ``entries``; pass :data:`CATALOGUE` for those of the library.

    ``samples`` is the most that any entry may draw of each input; each has its own number. With
    several ``processes``, call it under ``if __name__ == "__main__":``. ``tell`` is called with
    each line as soon as it is there.

    Claim: if all mechanisms keep their claims, the chance that any entry fails is at most
    ``false_alarm``.

    Why: each entry is audited at confidence 1 - false_alarm / entries; the union bound.

    >>> from discreet import audit
    >>> survey = [entry for entry in audit.CATALOGUE if entry.name == "Warner"]
    >>> report = run_catalogue(survey, samples=20_000)
    >>> report.passed, [line.verdict for line in report.lines]
    (True, ['passed'])
    """
    if not entries:
        raise ParameterError("entries must not be empty.", parameter="entries")
    alarm = probability(false_alarm, name="false_alarm")
    most = None if samples is None else whole(samples, name="samples", minimum=100)
    many = whole(processes, name="processes")
    confidence = 1 - alarm / len(entries)
    jobs = [(entry, min(entry.samples, most or entry.samples), confidence) for entry in entries]
    began, lines = time.perf_counter(), list[CatalogueLine]()
    for line in _lines(jobs, min(many, len(jobs))):
        lines.append(line)
        if tell is not None:
            tell(line)
    order = {entry.name: place for place, entry in enumerate(entries)}
    lines.sort(key=lambda line: order[line.name])
    return CatalogueReport(
        lines=tuple(lines), false_alarm=float(alarm), seconds=time.perf_counter() - began
    )


_Job = tuple[CatalogueEntry, int, Number]


def _lines(jobs: Iterable[_Job], processes: int) -> Iterator[CatalogueLine]:
    """Yield lines as they are done."""
    if processes == 1:
        yield from map(_line, jobs)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    # Not forked: whoever calls may have threads.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_line, job) for job in jobs]):
            yield done.result()


def _line(job: _Job) -> CatalogueLine:
    entry, samples, confidence = job
    began = time.process_time()  # of one core, whatever else the machine does
    found = entry.audit(samples=samples, confidence=confidence)
    return CatalogueLine(
        name=entry.name,
        claimed=float(entry.epsilon),
        delta=float(entry.delta),
        upper=entry.certified,
        lower=found.epsilon_lower,
        power=found.power,
        samples=samples,
        seconds=time.process_time() - began,
        event=found.event,
    )
