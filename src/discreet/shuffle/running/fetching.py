"""Fetch batches from a shuffler: kept on this disk before they leave that one."""

from collections.abc import Iterator

import httpx

from discreet.errors import LedgerUnavailable, NotAllowed
from discreet.shuffle.analyser.analyser import Analyser
from discreet.shuffle.running.sending import patiently

__all__ = ["fetch"]


def fetch(
    analyser: Analyser, *, url: str, shuffler: str, token: str, patience: float = 60.0
) -> Iterator[int]:
    """Keep every batch that the shuffler has, and yield its number once it is on the disk.

    ``shuffler`` is its public key. It deletes a batch when it is told that we have it; if that is
    lost, it gives it out again, and we know it.
    """
    with httpx.Client(base_url=url, timeout=300.0) as client:
        while True:
            answer = patiently(client, "GET", "/v1/batches/next", token=token, patience=patience)
            if answer.status_code == 204:
                return
            _require_taken(answer)
            number = analyser.keep(answer.content, shuffler=shuffler)
            path = f"/v1/batches/{number}"
            _require_taken(patiently(client, "DELETE", path, token=token, patience=patience))
            yield number


def _require_taken(answer: httpx.Response) -> None:
    if answer.status_code == 401:
        raise NotAllowed(
            "the shuffler gives batches only to its analyser's token. Its operator has it: "
            "discreet shuffle init prints it."
        )
    if not answer.is_success:
        raise LedgerUnavailable(f"this is no shuffler: it answered {answer.status_code}.")
