"""A gateway without a network, for docstrings: protected tables here, asked in documents."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from discreet._json import read_json
from discreet.client.payment import request_key
from discreet.client.remote_tables import RemoteTables
from discreet.client.transport import GatewayCall
from discreet.datasets import census
from discreet.errors import AccountNotFound, Refused
from discreet.privacy import Guarantee
from discreet.tables import Offer, Result, protect, write_quote

__all__ = ["ExampleGateway"]


@final
class ExampleGateway:
    """Answers the calls of one analyst about 2,000 generated people, with a total epsilon of 3.

    >>> with ExampleGateway() as gateway:
    ...     gateway.tables()
    RemoteTables('people': people; ExampleGateway())
    """

    def __enter__(self) -> "ExampleGateway":
        self._folder = TemporaryDirectory()
        self._tables = protect(
            census(2000, seed=1),
            name="people",
            unit="person_id",
            rows=1,
            guarantee=Guarantee(epsilon=3, delta=1e-6),
            columns={"income": {"bounds": (0, 100_000)}, "age": {"bounds": (0, 100)},
                     "sex": {"keys": ["female", "male"]}},
            ledger=Path(self._folder.name) / "budget.db",
        )  # fmt: skip
        self._jobs: list[dict[str, Any]] = []
        return self

    def __exit__(self, *error: object) -> None:
        self._tables.close()
        self._folder.cleanup()

    def __repr__(self) -> str:
        return "ExampleGateway()"

    def tables(self) -> RemoteTables:
        """Return its tables, as :func:`discreet.client.connect` would.

        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().name
        'people'
        """
        return RemoteTables(self, "people")

    def close(self) -> None:
        """Let go of nothing.

        >>> ExampleGateway().close()
        """

    def call(self, call: GatewayCall, /) -> dict[str, Any]:
        """Return the document that answers a call.

        >>> with ExampleGateway() as gateway:
        ...     gateway.call(GatewayCall("GET", "/v1/datasets"))
        {'datasets': ['people']}
        """
        parts, _, query = call.path.partition("?")
        *_, before, last = parts.split("/")
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "datasets": lambda: {"datasets": ["people"]},
            "people": self._described,
            "budgets": lambda: {"budgets": [{"name": "total", "used": 1 - self._tables.remaining}]},
            "quote": lambda: write_quote(self._tables.quote(*self._said(call))),
            "query": lambda: _answered(self._tables.sql(*self._said(call))),
            "plan": lambda: self._planned(call),
            "jobs": lambda: self._begun(call),
            "checkpoint": self._checkpoint,
            "consistency": lambda: self._consistency(**_numbers(query)),
        }
        if before == "jobs":
            return self._jobs[int(last)]
        if before == "receipts":
            return dict(read_json(self._tables.account.ledger.prove(int(last)).to_json()))
        if last not in answers:
            raise AccountNotFound("there is no such thing.")
        return answers[last]()

    def _said(self, call: GatewayCall) -> tuple[str, Offer]:
        said = dict(call.body or {})
        names = ("epsilon", "share", "within")
        return said.get("question", ""), Offer(
            **{name: said[name] for name in names if name in said}, key=request_key(call.key)
        )

    def _described(self) -> dict[str, Any]:
        tables = [
            {"name": name, "is_public": False,
             "columns": [{"name": one, "type": kind} for one, kind in columns.items()]}
            for name, columns in self._tables.tables.items()
        ]  # fmt: skip
        unit = str(self._tables.catalog.unit)
        return {"tables": tables, "unit": unit, "remaining": self._tables.remaining}

    def _planned(self, call: GatewayCall) -> dict[str, Any]:
        said = dict(call.body or {})
        workload = self._tables.plan(said["questions"], epsilon=said["epsilon"])
        expected = [
            [{"text": one.text, "half_width": one.half_width, "words": one.words} for one in each]
            for each in workload.expected
        ]
        answers = [_answered(one) for one in workload.release()] if "release" in said else None
        return {
            "epsilon": workload.epsilon, "delta": workload.delta, "fits": workload.quote.fits,
            "releases": len(workload.parts), "expected": expected, "text": str(workload),
            "answers": answers,
        }  # fmt: skip

    def _begun(self, call: GatewayCall) -> dict[str, Any]:
        made: dict[str, Any] = {"id": str(len(self._jobs)), "answer": None, "problem": None}
        try:
            answer = _answered(self._tables.sql(*self._said(call)))
            made |= {"state": "done", "answer": answer}
        except Refused as error:
            place = {"code": error.code, "line": error.line, "column": error.column}
            words = {"detail": str(error), "reason": error.reason, "remedy": error.remedy}
            problem = {"type": "urn:discreet:problem:refused", **place, **words}
            made |= {"state": "failed", "problem": problem}
        self._jobs.append(made)
        return made

    def _checkpoint(self) -> dict[str, Any]:
        ledger = self._tables.account.ledger
        return {"checkpoint": ledger.checkpoint(), "vkey": ledger.vkey}

    def _consistency(self, old: int, new: int) -> dict[str, Any]:
        ledger = self._tables.account.ledger
        proof = [b64encode(one).decode() for one in ledger.consistency(old, new)]
        return {"checkpoint": ledger.checkpoint(), "proof": proof}


def _numbers(query: str) -> dict[str, int]:
    return {name: int(one) for name, one in (part.split("=") for part in query.split("&"))}


def _answered(result: Result) -> dict[str, Any]:
    return {
        "receipt": list(result.receipt.bodies), "document": result.to_json().decode(),
        "left": result.left, "share": result.share, "more": result.more,
        "is_recalled": result.is_recalled,
    }  # fmt: skip
