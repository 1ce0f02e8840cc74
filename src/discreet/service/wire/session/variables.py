"""The settings of a session, and what a transaction does to them."""

from collections.abc import Mapping
from typing import Final, final

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.payment import check_own, cleared_by, is_own, own_names

__all__ = ["REPORTED", "SERVER_VERSION", "SessionVariables"]

SERVER_VERSION: Final = "16.0"
_DEFAULTS: Final = {
    "application_name": "", "bytea_output": "hex", "client_encoding": "UTF8",
    "client_min_messages": "notice", "DateStyle": "ISO, MDY",
    "default_table_access_method": "heap", "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed", "default_transaction_read_only": "on",
    "extra_float_digits": "1", "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off", "integer_datetimes": "on", "IntervalStyle": "postgres",
    "is_superuser": "off", "lc_collate": "C", "lc_ctype": "C", "lc_messages": "C",
    "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C", "lock_timeout": "0",
    "max_identifier_length": "63", "max_index_keys": "32", "row_security": "on",
    "search_path": '"$user", public', "server_encoding": "UTF8", "server_version": SERVER_VERSION,
    "server_version_num": "160000", "session_authorization": "",
    "standard_conforming_strings": "on", "statement_timeout": "0", "TimeZone": "UTC",
    "transaction_deferrable": "off", "transaction_isolation": "read committed",
    "transaction_read_only": "on",
}  # fmt: skip
_FIXED: Final = frozenset({
    "in_hot_standby", "integer_datetimes", "is_superuser", "max_identifier_length",
    "max_index_keys", "server_encoding", "server_version", "server_version_num",
    "lc_collate", "lc_ctype", "session_authorization",
})  # fmt: skip
_ONLY: Final = {  # what is sent is written in one way only
    "client_encoding": ("UTF8", "UTF-8", "UNICODE"),
    "datestyle": ("ISO",),
    "intervalstyle": ("POSTGRES",),
    "standard_conforming_strings": ("ON", "TRUE", "1"),
    "bytea_output": ("HEX",),
    "default_transaction_read_only": ("ON", "TRUE", "1"),
    "transaction_read_only": ("ON", "TRUE", "1"),
}
REPORTED: Final = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only",
    "in_hot_standby", "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding",
    "server_version", "session_authorization", "standard_conforming_strings", "TimeZone",
)  # fmt: skip
_SPELLED: Final = {name.lower(): name for name in (*_DEFAULTS, *own_names())}
_MOST: Final = 200  # settings of a session
_LONGEST: Final = 2000  # characters of one

Values = dict[str, str]


@final
class SessionVariables:
    """Settings by name: PostgreSQL's, which do nothing here, and ours, which say how to pay.

    ``given`` are those that the connection began with, to which RESET goes back.

    >>> settings = SessionVariables({"discreet.epsilon": "0.1"})
    >>> settings.set("discreet.share", "5%")
    >>> settings["discreet.epsilon"], settings["discreet.share"]
    ('', '5%')
    """

    def __init__(self, given: Mapping[str, str], **fixed: str) -> None:
        self._base: Values = {name.lower(): value for name, value in {**_DEFAULTS, **fixed}.items()}
        self._now: Values = dict(self._base)
        self._after: Values | None = None  # what is left of a transaction's settings after it
        self._before: Values | None = None
        self._marks: list[tuple[str, Values, Values]] = []
        for name, value in given.items():
            self.set(name, value)
        self._base = dict(self._now)

    def __getitem__(self, name: str) -> str:
        found = self._now.get(name.lower())
        if found is None and name.lower() not in _SPELLED:
            raise WireFailure("42704", f"there is no setting {name[:80]!r}")
        return found or ""

    def spelled(self, name: str) -> str:
        """Return a name as it is usually written."""
        return _SPELLED.get(name.lower(), name.lower())

    def all(self) -> dict[str, str]:
        """Return all settings, in order of their names."""
        return {self.spelled(name): self._now[name] for name in sorted(self._now)}

    @property
    def own(self) -> dict[str, str]:
        """Our own settings, without ``discreet.`` before their names."""
        found = {name: value for name, value in self._now.items() if is_own(name) and value}
        return {name.partition(".")[2]: value for name, value in found.items()}

    def set(self, name: str, value: str, *, is_local: bool = False) -> None:
        """Change a setting, for this transaction only where it is ``is_local``."""
        key = name.lower()
        _check(key, value)
        if is_local and self._after is None:
            return  # there is no transaction to which it could be local
        changes = {key: value}
        if is_own(key) and value:
            changes |= dict.fromkeys(cleared_by(key), "")
        self._change(changes, is_local=is_local)

    def reset(self, name: str | None = None) -> None:
        """Bring back one setting, or all, as the connection began with."""
        if name is None:
            self._change({key: self._base.get(key, "") for key in self._now}, is_local=False)
            return
        key = name.lower()
        if key not in self._now and key not in _SPELLED:
            raise WireFailure("42704", f"there is no setting {name[:80]!r}")
        self.set(key, self._base.get(key, ""))

    def _change(self, changes: Values, *, is_local: bool) -> None:
        if len(self._now | changes) > _MOST:
            raise WireFailure("54000", f"a session has at most {_MOST} settings")
        self._now |= changes
        if self._after is not None and not is_local:
            self._after |= changes

    def begin(self) -> None:
        """Begin a transaction."""
        self._before, self._after, self._marks = dict(self._now), dict(self._now), []

    def end(self, *, is_kept: bool) -> None:
        """End a transaction; what it set is undone unless ``is_kept``."""
        kept = self._after if is_kept else self._before
        if kept is not None:
            self._now = dict(kept)
        self._before, self._after, self._marks = None, None, []

    def mark(self, name: str) -> None:
        """Set a savepoint."""
        if len(self._marks) >= _MOST:
            raise WireFailure("54000", f"a transaction has at most {_MOST} savepoints")
        self._marks.append((name.lower(), dict(self._now), dict(self._after or {})))

    def return_to(self, name: str, *, is_released: bool) -> None:
        """Go back to a savepoint, or forget it and those after it."""
        places = [i for i, (mark, *_) in enumerate(self._marks) if mark == name.lower()]
        if not places:
            raise WireFailure("3B001", f"there is no savepoint {name[:80]!r}")
        if is_released:
            del self._marks[places[-1] :]
            return
        _, now, after = self._marks[places[-1]]
        self._now, self._after = dict(now), dict(after)
        del self._marks[places[-1] + 1 :]


def _check(key: str, value: str) -> None:
    if len(value) > _LONGEST or len(key) > 80 or "\0" in value:
        raise WireFailure("22023", f"a setting has at most {_LONGEST} characters")
    if is_own(key):
        check_own(key, value)
    elif key in _FIXED:
        raise WireFailure("55P02", f"the setting {_SPELLED[key]!r} cannot be changed")
    elif key in _ONLY and value.upper().replace(" ", "").split(",")[0] not in _ONLY[key]:
        raise WireFailure(
            "22023", f"{_SPELLED[key]} can only be {_ONLY[key][0]} here, and data is only read"
        )
