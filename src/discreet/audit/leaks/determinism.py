"""Find what depends on the data and not on noise, by running a surface again and again."""

import hashlib
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from discreet._exact import Number, nonnegative, probability, show
from discreet.audit.leaks.canaries import Planted, plant
from discreet.audit.leaks.report import Leak, LeakReport
from discreet.audit.leaks.requesting import WebRequest
from discreet.audit.leaks.scanning import as_callable, exercise
from discreet.audit.leaks.views import views
from discreet.errors import ParameterError

__all__ = ["scan_determinism"]

Make: TypeAlias = Callable[[Planted, Path], object]
_Tokens: TypeAlias = set[tuple[str, bytes]]
_MOST_RUNS = 2_000
_WORD = re.compile(rb"[A-Za-z0-9_.+-]{2,}")


def scan_determinism(
    make: Make,
    *,
    epsilon: Number,
    delta: Number = 0,
    planted: Planted | None = None,
    requests: Iterable[WebRequest | str] = (),
    false_alarm: Number = 1e-9,
) -> LeakReport:
    """Search for values that come back with the same data and change when one person leaves.

    No canary can find an exact count, an ETag of the true result, a hash with a fixed salt, or a
    number rounded to three digits. But noise is drawn anew in every run: what is always the same
    with somebody in the data, and never there without, was not protected by any.

    ``make(planted, folder)`` builds a fresh surface as :func:`scan` takes it, with all its state in
    ``folder``, which is empty; what it puts there is searched if the surface changes it. One run
    of the surface may tell about one person what (``epsilon``, ``delta``) allows, and no more: the
    smaller it is, the fewer runs are needed.

    Claim: if runs are independent and each is (epsilon, delta)-DP, the scan fails with probability
    at most ``false_alarm``.

    Why: a word that occurs with probability p in a run occurs with at least
    q = e^-epsilon (p - delta) without the person. That it is in all n runs with, and in none of n
    runs without, has probability (p (1 - q))^n at most g^n, with g = e^epsilon / 4 + delta up to
    epsilon = log 2 and 1 - e^-epsilon + delta beyond. The words in question are those of one more
    run of each kind, which does not count, so their number times g^n bounds the false alarms.

    >>> def make(planted, folder):
    ...     return lambda: f"mean age of {planted.rows} people"
    >>> found = scan_determinism(make, epsilon=0.1)
    >>> print(found.leaks[0])
    2 values that depend on one person as always the same in 19 runs, in result
    """
    spent, failure = (
        nonnegative(epsilon, name="epsilon"),
        probability(delta, name="delta", zero=True),
    )
    keep = _kept(epsilon=float(spent), delta=float(failure))
    alarm = float(probability(false_alarm, name="false_alarm"))
    here = plant() if planted is None else planted
    asked, seen = list(requests), [0, 0]

    def words(data: Planted) -> _Tokens:
        with tempfile.TemporaryDirectory() as folder:
            run = as_callable(make(data, Path(folder)), asked)
            heard = exercise(run, folders=[Path(folder)])
        outputs = [(where, content) for where, content in heard if content is not None]
        seen[0] += len(outputs)
        seen[1] += sum(len(content) for _, content in outputs)
        return _words(outputs)

    pair = here, here.without_first()
    first = [words(one) for one in pair]
    runs = math.ceil(math.log(sum(map(len, first)) / alarm + 1) / -math.log(keep))
    if runs > _MOST_RUNS:
        raise ParameterError(
            f"{runs:,} runs would be needed to tell noise from none at epsilon={show(epsilon)}. "
            "Let the surface spend less in one run.",
            parameter="epsilon",
        )
    left = [first[0] - first[1], first[1] - first[0]]
    done = 0
    while done < runs and any(left):
        done += 1
        shown = [words(one) for one in pair]
        left = [(left[0] & shown[0]) - shown[1], (left[1] & shown[1]) - shown[0]]
    counts = Counter(where for side in left for where, _ in side)
    return LeakReport(
        leaks=tuple(_leak(where, count, done, keep) for where, count in sorted(counts.items())),
        outputs=seen[0],
        size=seen[1],
        false_alarm=alarm,
        scanned=f"{2 * done + 2} runs, with and without one person, {seen[0]:,} outputs",
    )


def _kept(*, epsilon: float, delta: float) -> float:
    """Return the largest p (1 - e^-epsilon (p - delta)): how likely noise looks like none."""
    best = math.exp(epsilon) / 4 if epsilon <= math.log(2) else -math.expm1(-epsilon)
    return min(best + delta, 1 - 2.0**-52)


def _words(outputs: Iterable[tuple[str, bytes]]) -> _Tokens:
    """Return all words with where they were, and digest and size of whole outputs."""
    found: _Tokens = set()
    for place, content in outputs:
        where = place.partition(" file ")[0] if place.startswith("temporary") else place
        where = "file" if where.startswith("file ") else where
        found.add((f"{where}, as a whole", hashlib.sha256(content).digest()))
        found.add((f"size of {where}", str(len(content)).encode()))
        for _, view in views(content, packed=True):
            found.update((where, word.strip(b".+-")) for word in _WORD.findall(view))
    return found


def _leak(where: str, count: int, runs: int, keep: float) -> Leak:
    plural = "s that depend" if count > 1 else " that depends"
    return Leak(
        what=f"{count:,} value{plural} on one person",
        form=f"always the same in {runs} runs",
        where=(where,),
        chance=keep**runs,
    )
