"""What an account is, and what its custodians do: sources, limits, grants, the policy."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet._json import read_json
from discreet.accounting import Loss
from discreet.ledger.accounts import limits, sources
from discreet.ledger.accounts.sources import RegisteredSource
from discreet.ledger.receipts import Receipt
from discreet.ledger.recognition.content import TableContent
from discreet.ledger.rules.definition import TOTAL, Definition, Policy
from discreet.ledger.rules.entry import Entry
from discreet.ledger.writing import request as requests
from discreet.privacy import Guarantee, Neighbours, Period, Unit

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

__all__ = ["AccountCustody"]


class AccountCustody:
    """The half of :class:`discreet.ledger.Account` that sets terms and spends nothing."""

    def __init__(self, ledger: "Ledger", name: str) -> None:
        self._ledger = ledger
        self._session = ledger._session
        self.name = name

    @property
    def ledger(self) -> "Ledger":
        """The ledger that it belongs to."""
        return self._ledger

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._definition().unit

    @property
    def neighbours(self) -> Neighbours:
        """Which datasets count as neighbours."""
        return self._definition().neighbours

    @property
    def guarantee(self) -> Guarantee:
        """What is promised for everything together."""
        return self._definition(fresh=True).total.guarantee

    @property
    def policy(self) -> str:
        """What happens at exhaustion: deny, degrade or wait."""
        return self._definition(fresh=True).policy

    @property
    def policies(self) -> tuple[str, ...]:
        """Every policy that it has had: first the one that it has now."""
        now, place = self.policy, f"policies/{self.name}"  # a change meanwhile leaves none out
        with self._session.read() as snapshot:
            before = read_json(self._session.facts(snapshot, [place]).get(place, "[]"))
        return (now, *(str(one) for one in before if one != now))

    def register(
        self,
        name: str,
        *,
        version: str,
        identities: Sequence[str],
        content: TableContent | None = None,
        types: Mapping[str, str] | None = None,
        override: str | None = None,
        who: str | None = None,
    ) -> Receipt:
        """Register a source of data about this population, or a new version of one.

        ``identities`` are texts by which the source, its copies, and whatever it was made from
        can be known again: a location, a digest, the identities of the tables under a view.
        ``content`` are samples of the data, by which copies are known whatever they are called.
        Only keyed hashes are stored. ``types`` are kept for columns that have none, each by its
        fingerprint. A source of another account needs ``override``, a reason that is on record, as
        is ``who`` registers it, where that is said.

        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.register("payroll", version="1", identities=["/data/payroll"])
        ...     receipt.entries[0]["source"]["name"]
        'payroll'
        """
        return sources.register(
            self, name, version=version, identities=identities, content=content, types=types,
            override=override, who=who,
        )  # fmt: skip

    def sources(self) -> dict[str, str]:
        """Return the sources registered with it, each with its version.

        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     _ = account.register("payroll", version="1", identities=["/data/payroll"])
        ...     account.sources()
        {'payroll': '1'}
        """
        return sources.versions(self)

    def registered(self) -> dict[str, RegisteredSource]:
        """Return what is known of its sources: version, types, and whether there is a sketch.

        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     _ = account.register("payroll", version="1", identities=["/data/payroll"])
        ...     account.registered()["payroll"].is_sketched
        False
        """
        return sources.registered(self)

    def limit(
        self,
        guarantee: Guarantee,
        *,
        analyst: str | None = None,
        purpose: str | None = None,
        every: Period | str | None = None,
        who: str | None = None,
    ) -> Receipt:
        """Limit what an analyst, a purpose or a period may use of the total, from now on.

        ``"*"`` stands for each analyst or purpose that has no limit of its own. ``every="month"``
        makes it an allowance that begins anew each month; the total never does. ``who`` sets it is
        on record, where that is said.

        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.limit(Guarantee(epsilon=0.1), analyst="*", every="month")
        ...     receipt.entries[0]["line"]
        'analyst=*,every=month'
        """
        return limits.limit(self, guarantee, analyst=analyst, purpose=purpose, every=every, who=who)

    def grant(self, guarantee: Guarantee, *, who: str, reason: str, line: str = TOTAL) -> Receipt:
        """Widen the total, or the limit that ``line`` names. Only ever widens; stays on record.

        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     _ = account.grant(Guarantee(epsilon=2), who="chris", reason="board of 3 May")
        ...     account.guarantee
        Guarantee(epsilon=2, delta=0)
        """
        return limits.grant(self, guarantee, who=who, reason=reason, line=line)

    def set_policy(self, policy: Policy, *, who: str, reason: str) -> Receipt:
        """Change what happens at exhaustion, from now on: deny, degrade or wait.

        No guarantee depends on it, so it may change in any direction, and back. Who did it and why
        stays on record. Other programs act by it within a second.

        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     _ = account.set_policy("degrade", who="chris", reason="rough answers will do")
        ...     account.policy, account.policies
        ('degrade', ('degrade', 'deny'))
        """
        return limits.set_policy(self, policy, who=who, reason=reason)

    # What follows is for this room only.

    def _definition(self, *, fresh: bool = False) -> Definition:
        return self._session.definition(self.name, fresh=fresh)

    def _append(self, entry: Entry, *, loss: Loss | None = None, **more: Any) -> Receipt:
        entry = {"key": requests.new_key(), **entry, "account": self.name}
        definition = None if loss is None else self._definition()
        return self._session.submit(entry, definition=definition, loss=loss, **more)
