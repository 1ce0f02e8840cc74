"""Who is at the door: a name, roles, and the datasets that they are good for."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import final

from discreet.errors import NotAllowed

__all__ = ["Login", "Role"]


class Role(StrEnum):
    """What somebody may do: ask, look after data and budgets, or check the books.

    >>> [str(role) for role in Role]
    ['analyst', 'custodian', 'auditor']
    """

    ANALYST = "analyst"
    CUSTODIAN = "custodian"
    AUDITOR = "auditor"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Somebody whom the gateway knows, as it found out by itself: nothing here is the request's.

    ``who`` is the name that ledgers get. ``datasets`` limits a login to some; None is all of them.
    ``expires`` is a time of the Unix clock, ``key`` the public part of the API key that was shown.

    >>> ana = Login(who="ana", roles=frozenset({Role.ANALYST}), datasets=frozenset({"visits"}))
    >>> ana.sees("visits"), ana.sees("people"), ana.is_a(Role.CUSTODIAN)
    (True, False, False)
    """

    who: str
    roles: frozenset[Role]
    datasets: frozenset[str] | None = None
    expires: float | None = None
    key: str | None = None

    def is_a(self, *roles: Role) -> bool:
        """Say whether the login has one of some roles.

        >>> Login(who="ana", roles=frozenset({Role.ANALYST})).is_a(Role.ANALYST, Role.AUDITOR)
        True
        """
        return not self.roles.isdisjoint(roles)

    def sees(self, dataset: str) -> bool:
        """Say whether the login is good for a dataset.

        >>> Login(who="ana", roles=frozenset()).sees("people")
        True
        """
        return self.datasets is None or dataset in self.datasets

    def needs(self, roles: Iterable[Role]) -> None:
        """Refuse unless the login has one of some roles.

        >>> Login(who="ana", roles=frozenset({Role.ANALYST})).needs([Role.AUDITOR])
        Traceback (most recent call last):
            ...
        discreet.errors.NotAllowed: this needs the role auditor. Nothing was spent. ...
        """
        wanted = list(roles)
        if not self.is_a(*wanted):
            raise NotAllowed(
                f"this needs the role {' or '.join(wanted)}. Nothing was spent. A custodian gives "
                "roles with: discreet keys create"
            )
