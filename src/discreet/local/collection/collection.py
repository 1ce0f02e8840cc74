"""A collection: what devices are asked, paid for in a ledger, and what came of it."""

import json
import os
import threading
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, final

import numpy as np

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.errors import DataError, ParameterError
from discreet.ledger import Account, Ledger, Receipt
from discreet.local.collection import charging
from discreet.local.collection.file import REJECTS, Kept, ReportFile
from discreet.local.collection.publication import Publication, write_document
from discreet.local.collection.terms import CollectionTerms
from discreet.local.wire import Parameters, parameters_of, sort_out
from discreet.local.wire.kinds import kind_of
from discreet.local.wire.reports import HEADER

__all__ = ["Collection"]


@final
class Collection:
    """Collect reports of devices, on an account of a ledger. Threads may share it.

    Claim: everything that leaves it, at any time and to anybody who has the file too, is private
    for each device as the account promises, if devices keep to the caps they are told.

    Why: all that is stored are reports, each made private by its device; ``charging`` has the rest.
    The minimum is no part of the proof: it keeps estimates from being read that are mostly noise,
    and a single report from being told by the difference of two.

    A report counts once it is on the disk, and is then never lost and never counted twice, also
    where the process is killed: storing it and counting it is one commit, and whoever got no answer
    sends the same bytes again, which are recognised by their token.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from discreet import local
    >>> from discreet.ledger import Ledger
    >>> from discreet.local.wire import encode
    >>> from discreet.privacy import Guarantee, Unit
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(Path(folder.name) / "budget.db")
    >>> account = ledger.create("devices", unit=Unit.column("device"), neighbours="replace_one",
    ...                         guarantee=Guarantee(epsilon=10))
    >>> asked = local.HadamardResponse(domain=8, epsilon=2)
    >>> collection = Collection.open(
    ...     ledger, Path(folder.name) / "emoji.db", name="emoji", account="devices",
    ...     randomiser=asked, a_day=2, lifetime=10, minimum=1000, who="ana", purpose="keyboard")
    >>> account.used    # of five reports a device, before there is one
    1.0
    >>> reports = encode(collection.parameters, asked.release([3] * 1000))
    >>> collection.take(reports)["accepted"], collection.take(reports[:2])["replayed"]
    (1000, 2)
    >>> published = collection.publish()
    >>> int(published.numbers["counts"].argmax()), ledger.prove(published.receipt).is_proven
    (3, True)
    >>> collection.close(); ledger.close(); folder.cleanup()
    """

    def __init__(self, ledger: Ledger, file: ReportFile) -> None:
        self._file = file
        self.terms = CollectionTerms.from_json(file.terms)
        if ledger.origin != self.terms.ledger:
            raise DataError(
                f"this collection is paid for in the ledger {self.terms.ledger}, and this is "
                f"{ledger.origin}. Open the former."
            )
        self._account = ledger[self.terms.account]
        self._unit, self._neighbours = self._account.unit, self._account.neighbours
        self._dues = _dues(self.terms, self._account)
        self._paid_on: date | None = None
        self._paying, self._publishing = threading.Lock(), threading.Lock()
        self._last: Publication | None = None

    @classmethod
    def open(
        cls,
        ledger: Ledger,
        path: str | os.PathLike[str],
        *,
        name: str,
        account: str,
        randomiser: Any,
        a_day: Number,
        lifetime: Number,
        minimum: int,
        who: str,
        purpose: str,
        values: Sequence[str] | None = None,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        participation_is_public: bool = False,
    ) -> "Collection":
        """Open a collection in a file, and charge its account; a new one, or as it was declared.

        A device spends at most ``a_day`` epsilon on one day and ``lifetime`` ever, the epsilon of
        the ``randomiser`` with each report. The account is charged the lifetime; where it protects
        each day (or week, or month) by itself, what a device may say in one. ``minimum`` is the
        number of new reports from which on an estimate is published.

        >>> import tempfile
        >>> from discreet import local, privacy, testing
        >>> tea = local.DirectResponse(domain=4, epsilon=1)
        >>> with testing.temporary_ledger() as ledger, tempfile.TemporaryDirectory() as folder:
        ...     account = ledger.create(
        ...         "devices", unit=privacy.Unit.column("device"), neighbours="replace_one",
        ...         guarantee=privacy.Guarantee(epsilon=10))
        ...     collection = Collection.open(
        ...         ledger, f"{folder}/tea.db", name="tea", account="devices", randomiser=tea,
        ...         a_day=1, lifetime=5, minimum=2, who="ana", purpose="menu")
        ...     account.used, collection
        ...     collection.close()
        (0.5, Collection('tea', 0 reports))
        """
        terms = CollectionTerms(
            parameters=parameters_of(
                randomiser,
                name=name,
                a_day=a_day,
                lifetime=lifetime,
                values=values,
                not_before=not_before,
                not_after=not_after,
            ),
            ledger=ledger.origin,
            account=account,
            minimum=minimum,
            who=who,
            purpose=purpose,
            opened=charging.today(),
            participation_is_public=participation_is_public,
        )
        place = Path(path)
        if not place.exists():
            _check(ledger[account], terms)  # before there is a file
            ReportFile.create(place, terms.to_json()).close()
        found = cls.resume(ledger, place)
        if not found.terms.is_same_as(terms):
            found.close()
            raise ParameterError(
                f"{place} holds a collection that was declared otherwise, and what devices were "
                "told cannot change. Nothing was charged. Declare it as it was, or name a new "
                "file.",
                parameter="path",
            )
        return found

    @classmethod
    def resume(cls, ledger: Ledger, path: str | os.PathLike[str]) -> "Collection":
        """Open a collection that was declared before, and charge what is owed by now.

        >>> import tempfile
        >>> from discreet import local, privacy, testing
        >>> tea = local.DirectResponse(domain=4, epsilon=1)
        >>> with testing.temporary_ledger() as ledger, tempfile.TemporaryDirectory() as folder:
        ...     account = ledger.create(
        ...         "devices", unit=privacy.Unit.column("device"), neighbours="replace_one",
        ...         guarantee=privacy.Guarantee(epsilon=10))
        ...     collection = Collection.open(
        ...         ledger, f"{folder}/tea.db", name="tea", account="devices", randomiser=tea,
        ...         a_day=1, lifetime=5, minimum=2, who="ana", purpose="menu")
        ...     collection.close()
        ...     with Collection.resume(ledger, f"{folder}/tea.db") as again:
        ...         again.terms == collection.terms, account.used
        (True, 0.5)
        """
        place = Path(path)
        if not place.exists():
            raise ParameterError(
                f"there is no collection at {place}. Make one with: discreet collect init",
                parameter="path",
            )
        file = ReportFile(place)
        try:
            found = cls(ledger, file)
            found.pay()
        except BaseException:
            file.close()
            raise
        return found

    @property
    def parameters(self) -> Parameters:
        """What devices are told."""
        return self.terms.parameters

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def dues(self) -> charging.Dues:
        """What the account is charged, once or for each period."""
        return self._dues

    @property
    def counts(self) -> dict[str, int]:
        """How many reports were accepted, and how many were not, for each reason."""
        return self._file.counts

    @property
    def charges(self) -> dict[str, Receipt]:
        """The receipts of what was paid, by period; by an empty text where it was paid once."""
        return {period: Receipt(bodies=(entry,)) for period, entry in self._file.charges.items()}

    def pay(self) -> None:
        """Charge what is owed by today, durably, or raise and take no reports.

        >>> from discreet.testing import temporary_collection
        >>> with temporary_collection() as collection:
        ...     collection.pay()  # opening it has paid all
        ...     collection.dues.reports
        5
        """
        now = charging.today()
        if self._paid_on == now:
            return
        with self._paying:
            paid = self._file.charges
            for label in charging.labels(self._dues, opened=self.terms.opened, now=now):
                if label not in paid:
                    receipt = charging.pay_dues(self._account, self.terms, self._dues, label)
                    self._file.add_charge(label, receipt.bodies[0])
            self._paid_on = now

    def take(self, raw: Iterable[bytes]) -> dict[str, int]:
        """Store the reports among these bytes, durably; return how many were, and what was not.

        Nothing in the bytes can make it fail.

        >>> from discreet.local.wire import encode
        >>> from discreet.testing import temporary_collection
        >>> with temporary_collection() as collection:
        ...     reports = encode(collection.parameters, [3, 1])
        ...     collection.take([*reports, reports[0], b"?"])
        ...     collection.close()
        {'accepted': 2, 'malformed': 1, 'foreign': 0, 'out_of_range': 0, 'replayed': 1}
        """
        self.pay()
        came = list(raw)
        found = sort_out(self.parameters, came)
        payloads = [came[position][HEADER:] for position in found.positions]
        return self._file.add(
            zip(found.tokens, payloads, strict=True),
            rejects={what: getattr(found, what) for what in REJECTS},
        )

    def estimate(self) -> Any:
        """Estimate from all reports so far. It is free, and not on record.

        >>> from discreet.local.wire import encode
        >>> from discreet.testing import temporary_collection
        >>> with temporary_collection() as collection:
        ...     reports = encode(collection.parameters, [3, 1])
        ...     _ = collection.take(reports)
        ...     collection.estimate().counts.shape
        ...     collection.close()
        (4,)
        """
        return self._estimate()[1]

    @property
    def last_publication(self) -> Publication | None:
        """What was published last, with its receipt; None before the first."""
        kept = self._file.last_publication
        if kept is None:
            return None
        if self._last is None or self._last.number != kept.number:
            self._last = self._published(kept)
        return self._last

    def publish(self) -> Publication:
        """Publish an estimate of all reports so far, or the last one again if few are new.

        It is free, however often: whatever is computed from reports tells no more of a device than
        its reports do, and those are paid for. An entry of the ledger commits to what was said.

        >>> from discreet.local.wire import encode
        >>> from discreet.testing import temporary_collection
        >>> with temporary_collection() as collection:
        ...     reports = encode(collection.parameters, [3, 1])
        ...     _ = collection.take(reports)
        ...     published = collection.publish()
        ...     published.number, published.n, collection.publish() == published
        ...     collection.close()
        (1, 2, True)
        """
        with self._publishing:
            last = self.last_publication
            before = 0 if last is None else last.n
            n = self.counts["accepted"]
            if n - before < self.terms.minimum:
                if last is not None:
                    return last
                raise DataError(
                    f"{n} reports have come, and estimates are published from "
                    f"{self.terms.minimum} on. Wait for more."
                )
            number = 1 if last is None else last.number + 1
            n, estimate = self._estimate()
            document = write_document(
                self.terms, estimate, number=number, n=n, rejects=self._rejects()
            )
            self._file.add_publication(number, n=n, document=document)
            published = self.last_publication
            assert published is not None
            return published

    def prove(self, published: Publication) -> Receipt:
        """Return a publication's receipt with the proof that it is in the ledger.

        >>> from discreet.local.wire import encode
        >>> from discreet.testing import temporary_collection
        >>> with temporary_collection() as collection:
        ...     reports = encode(collection.parameters, [3, 1])
        ...     _ = collection.take(reports)
        ...     collection.prove(collection.publish()).is_proven
        ...     collection.close()
        True
        """
        return self._account.ledger.prove(published.receipt)

    def _estimate(self) -> tuple[int, Any]:
        randomiser = self.parameters.randomiser
        n, payloads = self._file.payloads()
        width = len(payloads) // max(1, n)
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(n, width)
        reports, possible = kind_of(randomiser).layout.unpack(rows, randomiser)
        if not possible.all():
            raise DataError("this collection holds what is no report: its file was altered.")
        return n, randomiser.estimate(reports)

    def _rejects(self) -> dict[str, int]:
        return {what: n for what, n in self.counts.items() if what in REJECTS}

    def _published(self, kept: Kept) -> Publication:
        """Return a publication; one that a crash left without its receipt gets it now."""
        entries = kept.entries
        if entries is None:
            receipt = self._recorded(kept)
            entries = receipt.bodies
            self._file.settle_publication(kept.number, json.dumps(entries))
        return Publication(
            number=kept.number,
            n=kept.n,
            document=kept.document,
            receipt=Receipt(bodies=entries),
            terms=self.terms,
            dues=self._dues,
            unit=self._unit,
            neighbours=self._neighbours,
        )

    def _recorded(self, kept: Kept) -> Receipt:
        """Put it on record, once: what pays, a charge of nothing for this one, and its digest."""
        paid = list(self._file.charges.values())[-1]
        period = _now(self._dues)
        free = self._account.charge(
            PureLoss(epsilon=0),
            who=self.terms.who,
            purpose=self.terms.purpose,
            periods=period,
            # Where a crash came between this and the release, a later day is another request.
            key=f"local/{self.parameters.collection}/publication/{kept.number}/{period or ''}",
        )
        plan = f"collection {self.parameters.collection}, publication {kept.number}"
        released = self._account.release(free, kept.document, plan=plan)
        return Receipt(bodies=(paid, *released.bodies))

    def close(self) -> None:
        """Let go of the file; the ledger stays open.

        >>> from discreet.testing import temporary_collection
        >>> with temporary_collection() as collection:
        ...     collection.close()
        ...     collection.path.exists()
        True
        """
        self._file.close()

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Collection({self.parameters.name!r}, {self.counts['accepted']} reports)"


def _dues(terms: CollectionTerms, account: Account) -> charging.Dues:
    return charging.dues_of(
        terms.parameters,
        unit=account.unit,
        neighbours=account.neighbours,
        participation_is_public=terms.participation_is_public,
    )


def _check(account: Account, terms: CollectionTerms) -> None:
    """Refuse what the account does not allow, or cannot pay."""
    dues = _dues(terms, account)
    asked: dict[str, Any] = {"who": terms.who, "purpose": terms.purpose, "periods": _now(dues)}
    if not account.quote(dues.loss, **asked):
        charging.pay_dues(account, terms, dues, _now(dues) or "")  # refuses, and says all there is


def _now(dues: charging.Dues) -> str | None:
    """Return the label of the period that it is, if there is one."""
    return charging.label_of(charging.today(), dues) or None
