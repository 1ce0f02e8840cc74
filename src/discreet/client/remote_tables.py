"""Tables behind a gateway, asked as if they were here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, final
from urllib.parse import quote

from discreet._exact import Number, positive
from discreet._keywords import check_keywords
from discreet.client.answers import answered_release, read_answer, read_proof
from discreet.client.budgets import RemoteBudget, read_budgets
from discreet.client.description import Description, named, read_description
from discreet.client.jobs import RemoteJob
from discreet.client.log_watch import LogWatch
from discreet.client.payment import check_source, offer_members, question_texts, request_key
from discreet.client.transport import GatewayCall, Wire
from discreet.client.workload import RemoteWorkload, read_workload
from discreet.errors import DiscreetError, ParameterError
from discreet.ledger import Receipt
from discreet.ledger.verifier import Checkpoint
from discreet.noise import SYSTEM, Source
from discreet.tables import Ask, Offer, OfferFields, Question, Quote, Result, read_quote

__all__ = ["RemoteTables"]


@final
class RemoteTables:
    """A dataset behind a gateway, with the methods of :class:`discreet.tables.Protected`.

    :func:`connect` makes one. Answers, quotes and errors are those of local use. What a gateway
    decides cannot be said here: who asks, and where noise comes from.

    Threads may share one. Every answer is held against the digest in the ledger's entry, but for
    those of a workload, where the ledger commits to what several have in common;
    :meth:`receipt` and :meth:`verify_log` check proofs of what the gateway says.

    >>> from discreet.client.example import ExampleGateway
    >>> with ExampleGateway() as gateway:
    ...     T = gateway.tables()
    ...     answer = T.sql("SELECT AVG(income) AS pay FROM people WHERE age >= 18", epsilon=0.5)
    ...     print(f"{T.remaining:.0%} left")
    83% left
    """

    def __init__(
        self, wire: Wire, dataset: str, *, purpose: str | None = None, vkey: str | None = None
    ) -> None:
        self._wire, self._dataset, self._purpose = wire, dataset, purpose
        self._log = LogWatch(wire, vkey=vkey)
        self._described = self._looked()

    @property
    def name(self) -> str:
        """What the dataset is called at the gateway."""
        return self._dataset

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """The columns of every table, with their types, as they were last looked at."""
        return {table: dict(columns) for table, columns in self._described.tables.items()}

    @property
    def remaining(self) -> float:
        """The share of the budget that is left."""
        return self._looked().remaining

    @property
    def vkey(self) -> str:
        """The public key of the gateway's ledger: its first word, unless another one was given.

        Compare it with what the owner publishes, or give it to :func:`connect`.
        """
        return self._log.vkey

    def describe(self) -> dict[str, Any]:
        """Return all that is public: unit, guarantee, policy, tables, bounds, listed keys.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().describe()["unit"]
        'all records of one person_id'
        """
        return self._looked().document

    def datasets(self) -> list[str]:
        """Return the names of all datasets that the login may ask.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().datasets()
        ['people']
        """
        return named(self._wire)

    def budgets(self) -> list[RemoteBudget]:
        """Return the budgets that the login draws on, and how much of each is used.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     print(*gateway.tables().budgets())
        total: 0% used
        """
        return read_budgets(self._wire.call(GatewayCall("GET", self._path("budgets"))))

    def refresh(self) -> bool:
        """Look anew at what is public about the tables; say whether it has changed.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().refresh()
        False
        """
        before, self._described = self._described, self._looked()
        return before.tables != self._described.tables

    def quote(
        self,
        question: str | Question,
        offer: Offer | None = None,
        **fields: Unpack[OfferFields],
    ) -> Quote:
        """Say what a question costs: see :meth:`discreet.tables.Protected.quote`. Free.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     quote = gateway.tables().quote("SELECT COUNT(*) AS n FROM people", within=10)
        >>> round(quote.epsilon, 2), bool(quote)
        (0.3, True)
        """
        said = _offered(offer, fields, self.quote)
        body = self._body(question, said)
        return read_quote(self._wire.call(GatewayCall("POST", self._path("quote"), body)))

    def sql(
        self,
        question: str | Question,
        offer: Offer | None = None,
        *,
        source: Source = SYSTEM,
        **fields: Unpack[OfferFields],
    ) -> Result:
        """Answer a question in SQL, privately: see :meth:`discreet.tables.Protected.sql`.

        Each request has a key, the offer's or one of its own, by which the gateway knows it again:
        where the connection breaks it is sent once more, and never charged twice.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     T = gateway.tables()
        ...     T.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", share="5%").columns
        ('sex', 'n')
        """
        check_source(source)
        said = _offered(offer, fields, self.sql)
        call = GatewayCall(
            "POST",
            self._path("query"),
            self._body(question, said),
            key=request_key(said.key),
            is_paid=True,
        )
        return read_answer(self._wire.call(call))

    def begin(
        self,
        question: str | Question,
        offer: Offer | None = None,
        **fields: Unpack[OfferFields],
    ) -> RemoteJob:
        """Have a question answered in the background; the job's ``result`` is its answer.

        Where the connection breaks it is not sent again: look with :meth:`sql`, which recalls what
        was put on record.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     job = gateway.tables().begin("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
        ...     len(job.result(timeout=10))
        1
        """
        said = _offered(offer, fields, self.begin)
        _refuse_key(said, "a job")
        body = self._body(question, said)
        call = GatewayCall("POST", self._path("jobs"), body, is_paid=True, can_repeat=False)
        return RemoteJob.begun(self._wire.call(call), self._wire)

    def job(self, job_id: str) -> RemoteJob:
        """Return a job of the login's that was begun before, by its ``id``.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     T = gateway.tables()
        ...     T.job(T.begin("SELECT COUNT(*) AS n FROM people", epsilon=0.5).id).state
        'done'
        """
        return RemoteJob(job_id, self._wire)

    def plan(
        self,
        questions: Sequence[str | Question],
        offer: Offer | None = None,
        *,
        weights: Sequence[Number] | None = None,
        source: Source = SYSTEM,
        **fields: Unpack[OfferFields],
    ) -> RemoteWorkload:
        """Price many questions together: see :meth:`discreet.tables.Protected.plan`.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     workload = gateway.tables().plan(["SELECT COUNT(*) AS n FROM people"], epsilon=1)
        ...     workload.fits, len(workload.release())
        (True, 1)
        """
        check_source(source)
        said, texts = _offered(offer, fields, self.plan), question_texts(*questions)
        _refuse_key(said, "a workload")
        if not texts:
            raise ParameterError("plan at least one question.", parameter="questions")
        body = {"questions": texts, **offer_members(said, purpose=self._purpose)}
        if weights is not None:
            body["weights"] = [float(positive(one, name="weights")) for one in weights]
        planned = GatewayCall("POST", self._path("plan"), body)
        released = planned._replace(body={**body, "release": True}, is_paid=True, can_repeat=False)
        document = self._wire.call(planned)
        return read_workload(document, questions=texts, call=released, wire=self._wire)

    def where(self, condition: str) -> Question:
        """Begin a question about the first table with a condition, as in SQL.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().where("age >= 18").conditions
        ('age >= 18',)
        """
        return self.table().where(condition)

    def group_by(
        self, *columns: str, keys: "Mapping[str, Sequence[Any]] | None" = None
    ) -> Question:
        """Begin a question about the first table with what to group by.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().group_by("sex").keys
        ('sex',)
        """
        return self.table().group_by(*columns, keys=keys)

    def agg(self, **aggregates: Ask) -> Question:
        """Begin a question about the first table with what to ask for.

        >>> from discreet.tables import count
        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().agg(n=count()).release(epsilon=1).columns
        ('n',)
        """
        return self.table().agg(**aggregates)

    def table(self, name: str | None = None) -> Question:
        """Begin a question about one of the tables: the first, unless named.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().table("people").table
        'people'
        """
        names = self._described.protected
        if name is not None and name not in names:
            raise ParameterError(
                f"the protected tables are {', '.join(names)}, not {name!r}.", parameter="name"
            )
        return Question(table=name or names[0], tables=self)

    def receipt(self, of: Result | int) -> Receipt:
        """Return the receipt of an answer, or of an entry, with its proof, which is checked here.

        It can be saved, and convinces whoever has the ledger's public key: ``discreet verify``.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     T = gateway.tables()
        ...     T.receipt(T.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)).is_proven
        True
        """
        result = of if isinstance(of, Result) else None
        index = _entry(of.receipt) if isinstance(of, Result) else of
        if type(index) is not int or index < 0:
            raise ParameterError("of must be a Result, or the number of an entry.", parameter="of")
        document = self._wire.call(GatewayCall("GET", f"/v1/receipts/{index}"))
        receipt, proven = read_proof(document, vkey=self._log.vkey, result=result)
        self._log.follow(proven.vkey, str(document["checkpoint"]))
        if index not in [entry["index"] for entry in proven.entries]:
            raise DiscreetError(f"the gateway sent a receipt of other entries than {index}.")
        return receipt

    def checkpoint(self) -> str:
        """Return the ledger's signed checkpoint, after checking it. It is remembered.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().checkpoint().splitlines()[1]  # entries
        '2'
        """
        return self._log.checkpoint()

    def verify_log(self, *, since: str | None = None) -> Checkpoint:
        """Prove that the ledger was only added to since all checkpoints that were seen here.

        ``since`` is a checkpoint that was kept from an earlier connection. Raises
        :class:`discreet.errors.TamperingFound` where the ledger is not what it was.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     T = gateway.tables()
        ...     kept = T.checkpoint()
        ...     answer = T.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
        ...     T.verify_log(since=kept).size
        4
        """
        return self._log.verify(since)

    def close(self) -> None:
        """Let go of the connections.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().close()  # as the end of a with block does
        """
        self._wire.close()

    def __enter__(self) -> "RemoteTables":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        tables = ", ".join(self._described.protected)
        return f"RemoteTables({self._dataset!r}: {tables}; {self._wire!r})"

    def _path(self, name: str) -> str:
        return f"/v1/datasets/{quote(self._dataset, safe='')}/{name}"

    def _looked(self) -> Description:
        path = f"/v1/datasets/{quote(self._dataset, safe='')}"
        return read_description(self._wire.call(GatewayCall("GET", path)))

    def _body(self, question: str | Question, offer: Offer) -> dict[str, Any]:
        (text,) = question_texts(question)
        return {"question": text, **offer_members(offer, purpose=self._purpose)}


def _offered(offer: Offer | None, fields: OfferFields, by: Any) -> Offer:
    check_keywords(by, Offer, fields)
    return Offer(**fields) if offer is None else replace(offer, **fields)


def _refuse_key(offer: Offer, what: str) -> None:
    if offer.key is not None:
        raise ParameterError(
            f"key= is for a single question: a gateway does not know {what} again by it.",
            parameter="key",
        )


def _entry(receipt: Receipt) -> int:
    """Return the entry that shows most of what a receipt is about."""
    last = receipt.entries[-1]
    if last["kind"] == "reask":  # somebody else paid, and the login may see its own entry alone
        return int(last["index"])
    release = answered_release(receipt)
    return receipt.index if release is None else int(release["index"])
