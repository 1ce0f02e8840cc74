"""Protected tables: asked in SQL or step by step, priced first, paid from one budget."""

import getpass
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple, Unpack, final

from discreet._exact import Number
from discreet._words import percent
from discreet.errors import ParameterError
from discreet.ledger import Account
from discreet.noise import SYSTEM, Source
from discreet.tables.aggregates import Ask
from discreet.tables.declarations.declaration import Declaration
from discreet.tables.declarations.registration import attached
from discreet.tables.engines.progress import time_limit
from discreet.tables.engines.protocol import Connection
from discreet.tables.engines.sources import Sources
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import KeyValue
from discreet.tables.model.quotes import Quote
from discreet.tables.pricing.offer import Offer, OfferFields, offered, paid_by_epsilon
from discreet.tables.pricing.prepared import Prepared, PreparedComposite
from discreet.tables.questions import Question
from discreet.tables.release import answer as answering
from discreet.tables.release.bound_hints import told_counts, told_quantiles
from discreet.tables.release.composite import answer_composite
from discreet.tables.release.preparing import prepared_for
from discreet.tables.release.quoting import quoted
from discreet.tables.release.shape import answer_columns
from discreet.tables.release.watch import Rise, Watch, watched
from discreet.tables.release.workload import Workload, price_together
from discreet.tables.results.result import Result
from discreet.tables.sql.parse import parse_question

__all__ = ["Protected"]

SAMPLE_EVERY: Final = 600.0  # seconds: of data that changes all the time, not every version


class _Opened(NamedTuple):
    """One version of the data and all that belongs to it, exchanged as a whole."""

    catalog: Catalog
    account: Account
    sources: Sources
    connection: Connection


@final
class Protected:
    """Tables under one budget; :func:`protect` makes one.

    Every question can be priced with :meth:`quote` and is answered by :meth:`sql`, or step by step
    from :meth:`where`, :meth:`group_by` and :meth:`agg`. The same question asked again gets the
    answer that was given, and costs nothing.

    Claim: everything that is answered together is (epsilon, delta)-DP for the account's unit,
    neighbours and guarantee.

    Why: each answer is charged, durably, before data is touched, and its price is proved
    (:class:`discreet.tables.pricing.price.Price`); the account is a privacy filter
    (:class:`discreet.ledger.Account`).

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     answer = T.sql("SELECT AVG(income) AS pay FROM people WHERE age >= 18", epsilon=0.5)
    ...     print(f"{T.remaining:.0%} left")
    83% left
    """

    def __init__(
        self,
        declaration: Declaration,
        catalog: Catalog,
        opened: Sources,
        account: Account,
        connection: Connection,
        *,
        who: str | None,
        purpose: str,
        owns_ledger: bool,
    ) -> None:
        self.declaration = declaration
        self._opened = _Opened(catalog, account, opened, connection)
        self._lock = Lock()
        self._who, self._purpose = who or getpass.getuser(), purpose
        self._owns_ledger = owns_ledger
        self._sampled = monotonic()  # when samples were last taken, by which copies are known
        # What each analyst was told: what another one was told is nobody else's business.
        self._told: defaultdict[str, dict[tuple[str, Fraction], float]] = defaultdict(dict)
        self._counted: defaultdict[str, dict[str, int]] = defaultdict(dict)  # rows at most

    @property
    def name(self) -> str:
        """What is protected is called so, and the account unless another one was named."""
        return self.declaration.name

    @property
    def catalog(self) -> Catalog:
        """What is public about the tables, as they were last looked at."""
        return self._opened.catalog

    @property
    def account(self) -> Account:
        """The account that pays."""
        return self._opened.account

    @property
    def remaining(self) -> float:
        """The share of the budget that is left."""
        return self.account.remaining

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """The columns of every table, with their types."""
        return {
            table.name: {column.name: column.type for column in table.columns}
            for table in self.catalog.tables
        }

    @property
    def version(self) -> str:
        """The version of the data, as answers name it: a keyed digest, which tells nothing."""
        return self._asker(Offer(epsilon=1), SYSTEM).version

    def quote(
        self,
        question: str | Question,
        offer: Offer | None = None,
        **fields: Unpack[OfferFields],
    ) -> Quote:
        """Say what a question costs, what is left then, and how far off it would be. Free.

        Pay with ``epsilon`` (and ``delta``), the guarantee of this answer taken alone; with
        ``share`` of the whole budget, such as ``"5%"``; or ask the other way round, for an interval
        ``within`` so much at a ``confidence``. :class:`Offer` lists all that can be said, here as
        keywords or there.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     quote = T.quote("SELECT COUNT(*) AS n FROM people", within=10)
        >>> round(quote.epsilon, 2), bool(quote)
        (0.3, True)
        """
        asker = self._asker(offered(offer, fields, by=self.quote), SYSTEM)
        return quoted(_prepare(question, asker), asker, self._told[asker.who])

    def columns(
        self,
        question: str | Question,
        *,
        errors: bool = False,
        periods: str | Sequence[str] | None = None,
    ) -> dict[str, str]:
        """Say which columns the answer would have, with their types in SQL. Free.

        No protected table is looked at, so a driver may ask as often as it likes. ``errors`` adds
        the columns of error bars, ``periods`` is as in :class:`Offer`.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.columns("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex")
        {'sex': 'VARCHAR', 'n': 'DOUBLE'}
        """
        now = self._opened
        labels = [periods] if isinstance(periods, str) else periods
        (text,) = _texts([question])
        found = parse_question(text, now.catalog, periods=labels)
        seconds = self.declaration.resources.seconds
        with time_limit(None if seconds is None else float(seconds)):
            return answer_columns(found, now.catalog, now.connection, errors=errors)

    def sql(
        self,
        question: str | Question,
        offer: Offer | None = None,
        *,
        source: Source = SYSTEM,
        on_paid: answering.OnPaid | None = None,
        on_ready: answering.OnReady | None = None,
        **fields: Unpack[OfferFields],
    ) -> Result:
        """Answer a question in SQL, privately. See :meth:`quote` for how to pay.

        ``source`` is where the noise comes from. ``on_paid`` is called once the charge is durable
        and before data is touched, with the number of releases that it pays for; it returns how
        many seconds they may take, or None for what ``resources`` say. ``on_ready`` is called once
        the answer is complete and before it is put on record. An answer that was given before is
        recalled without them.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", share="5%").columns
        ('sex', 'n')
        """
        said = offered(offer, fields, by=self.sql)
        self.refresh()
        asker = replace(self._asker(said, source), on_paid=on_paid, on_ready=on_ready)
        prepared = _prepare(question, asker)
        if isinstance(prepared, PreparedComposite):
            return answer_composite(prepared, asker)
        result = answering.answer(prepared, asker)
        self._told[asker.who].update(told_quantiles(prepared, result))
        self._counted[asker.who].update(told_counts(prepared, result))
        return result

    def plan(
        self,
        questions: Sequence[str | Question],
        offer: Offer | None = None,
        *,
        weights: Sequence[Number] | None = None,
        source: Source = SYSTEM,
        **fields: Unpack[OfferFields],
    ) -> Workload:
        """Price many questions together, before anything is spent; ``.release()`` answers them.

        Questions about the same rows and groups share what they have in common, which is released
        once. ``epsilon`` and ``delta`` are the guarantee of all answers together. It is split so
        that the sum of the ``weights`` times the squared errors, each relative to what the same
        question would have alone, is as small as possible.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     workload = T.plan(["SELECT COUNT(*) AS n FROM people",
        ...                        "SELECT AVG(income) AS pay FROM people"], epsilon=0.5)
        ...     len(workload.parts), len(workload.release())
        (1, 2)
        """
        said = paid_by_epsilon(
            offer, fields, "delta", "confidence", what="a workload", by=self.plan
        )
        self.refresh()
        return price_together(_texts(questions), self._asker(said, source), weights=weights)

    def watch(
        self,
        questions: Sequence[str | Question | Rise],
        offer: Offer | None = None,
        *,
        threshold: Number,
        positives: int = 1,
        source: Source = SYSTEM,
        **fields: Unpack[OfferFields],
    ) -> Watch:
        """Tell which of many counts, or rises, are above a threshold, for the price of the alerts.

        Thousands of questions cost ``epsilon`` in all, until ``positives`` of them were answered
        with yes. All of it is charged now: a process that is lost forfeits what it had left. Call
        :meth:`Watch.ask` to look, as often as you like, also when the data has changed. A question
        may also be a :class:`Rise` of one count above another.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     ages = [f"SELECT COUNT(*) FROM people WHERE age > {a}" for a in range(120)]
        ...     T.watch(ages[::-1], threshold=1000, positives=1, epsilon=1)
        Watch(120 questions, 1 alerts left)
        """
        said = paid_by_epsilon(offer, fields, what="a watch", by=self.watch)
        self.refresh()
        asked = [_rise(one) if isinstance(one, Rise) else _texts([one])[0] for one in questions]
        return watched(
            asked, self._asker(said, source), threshold=threshold, positives=positives,
            connection=self._refreshed_connection,
        )  # fmt: skip

    def where(self, condition: str) -> Question:
        """Begin a question about the first table with a condition, as in SQL.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.where("age >= 18").conditions
        ('age >= 18',)
        """
        return self.table().where(condition)

    def group_by(
        self, *columns: str, keys: Mapping[str, Sequence[KeyValue]] | None = None
    ) -> Question:
        """Begin a question about the first table with what to group by.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.group_by("sex").keys
        ('sex',)
        """
        return self.table().group_by(*columns, keys=keys)

    def agg(self, **aggregates: Ask) -> Question:
        """Begin a question about the first table with what to ask for.

        >>> from discreet.tables import count
        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     abs(T.agg(n=count()).release(epsilon=2).value - 2000) < 50
        True
        """
        return self.table().agg(**aggregates)

    def table(self, name: str | None = None) -> Question:
        """Begin a question about one of the tables: the first, unless named.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.table("people").table
        'people'
        """
        names = list(self.declaration.tables)
        if name is not None and name not in names:
            raise ParameterError(
                f"the protected tables are {', '.join(names)}, not {name!r}.", parameter="name"
            )
        return Question(table=name or names[0], tables=self)

    def refresh(self) -> bool:
        """Look whether the data changed, and if so register its new version. Costs nothing.

        Done before every answer. Rows that came or went belong to the same people and the same
        budget; a column that vanished or changed its type is an error that names it. Questions
        that other threads have under way finish on the version that they began with.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.refresh()
        False
        """
        if not self._sources.has_changed():
            return False
        with self._lock:
            if self._sources.has_changed():  # still, for of many threads the first one does it
                before, is_sampled = self._sources, monotonic() - self._sampled > SAMPLE_EVERY
                reopened = before.reopened()
                connection = reopened.connected()
                # The connection before is not closed but let go of: the last question that holds it
                # ends it.
                self._opened = _Opened(
                    self.declaration.catalog(reopened.columns),
                    attached(
                        self.account.ledger, self.declaration, reopened, connection, before=before,
                        is_sampled=is_sampled,
                    ),
                    reopened,
                    connection,
                )  # fmt: skip
                self._sampled = monotonic() if is_sampled else self._sampled
                self._counted = defaultdict(dict)  # rows may have come
        return True

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the declaration as a small TOML file, from which :func:`open_tables` opens it.

        Places are written relative to that file, where they are near it.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     with tempfile.TemporaryDirectory() as folder:
        ...         T.save(os.path.join(folder, "people.toml"))
        ...         os.listdir(folder)
        ['people.toml']
        """
        self.declaration.relative_to(Path(path).parent).save(path, self.tables)

    def close(self) -> None:
        """Close the connection, and the ledger if it was opened here.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.close()  # as the end of the block does
        """
        self._opened.connection.close()
        if self._owns_ledger:
            self.account.ledger.close()

    def __enter__(self) -> "Protected":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        tables = ", ".join(self.declaration.tables)
        return (
            f"Protected({self.name!r}: {tables}; {self.catalog.unit}, "
            f"{self.declaration.guarantee}, {percent(self.remaining, up=False)} left)"
        )

    @property
    def _sources(self) -> Sources:
        return self._opened.sources

    def _refreshed_connection(self) -> Connection:
        self.refresh()
        return self._opened.connection

    def _asker(self, offer: Offer, source: Source) -> answering.Asker:
        named = replace(offer, who=offer.who or self._who, purpose=offer.purpose or self._purpose)
        seconds = self.declaration.resources.seconds
        now = self._opened  # once, as another thread may refresh it in between
        digest = now.account.ledger.fingerprint(now.sources.version, domain="version")
        return answering.Asker(
            account=now.account,
            connection=now.connection,
            catalog=now.catalog,
            version=digest[:32],
            offer=named,
            source=source,
            seconds=None if seconds is None else float(seconds),
            counted=dict(self._counted[str(named.who)]),
        )


def _prepare(asked: str | Question, asker: answering.Asker) -> Prepared | PreparedComposite:
    (question,) = _texts([asked])
    found = parse_question(question, asker.catalog, periods=asker.offer.labels)
    return prepared_for(question, found, asker, asker.offer)


def _rise(one: Rise) -> Rise:
    now, before = _texts([one.now, one.before])
    return Rise(now=now, before=before)


def _texts(questions: Sequence[str | Question]) -> list[str]:
    texts = [one.sql if isinstance(one, Question) else one for one in questions]
    if not all(isinstance(one, str) for one in texts):
        raise ParameterError("a question must be SQL, or a Question.", parameter="question")
    return texts
