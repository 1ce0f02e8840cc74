"""Send envelopes as devices do: again until there is an answer."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import httpx

from discreet.errors import LedgerUnavailable
from discreet.shuffle.shuffler.verdict import Arrival, Verdict

__all__ = ["Delivery", "deliver", "patiently"]

_LATER: Final = (502, 503, 504)
_PAUSE: Final = 0.2  # seconds


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How many envelopes a shuffler keeps, and how many it refused, by verdict.

    >>> Delivery(verdicts={Verdict.waiting: 9, Verdict.known: 1}).kept
    10
    """

    verdicts: dict[Verdict, int]

    @property
    def kept(self) -> int:
        """How many will leave with a batch, or have left."""
        return sum(self.verdicts.get(one, 0) for one in (Verdict.waiting, Verdict.known))


def deliver(arrivals: Iterable[Arrival], *, url: str, patience: float = 60.0) -> Delivery:
    """Send envelopes with their tokens, and say what became of them.

    An envelope that got no answer is sent again as it is, for ``patience`` seconds: the shuffler
    knows it by its bytes.
    """
    found: Counter[Verdict] = Counter()
    with httpx.Client(base_url=url, timeout=30.0) as client:
        for token, envelope in arrivals:
            answer = patiently(
                client, "POST", "/v1/envelopes", token=token, body=envelope, patience=patience
            )
            found[Verdict(answer.json()["state"])] += 1
    return Delivery(verdicts=dict(found))


def patiently(
    client: httpx.Client,
    method: str,
    path: str,
    *,
    token: str,
    body: bytes = b"",
    patience: float,
) -> httpx.Response:
    """Ask until there is an answer; everything that is asked here may be asked twice."""
    deadline = time.monotonic() + patience
    while True:
        try:
            headers = {"Authorization": f"Bearer {token}"}
            answer = client.request(method, path, content=body, headers=headers)
        except httpx.TransportError as problem:
            told = type(problem).__name__
        else:
            if answer.status_code not in _LATER:
                return answer
            told = f"status {answer.status_code}"
        if time.monotonic() > deadline:
            raise LedgerUnavailable(
                f"the shuffler did not answer ({told}). Check its address and that it runs, then "
                "send the same envelopes again: it knows those that it has."
            )
        time.sleep(_PAUSE)
