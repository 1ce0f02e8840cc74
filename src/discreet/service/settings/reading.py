"""Settings from a TOML file, then the environment, then flags: the later one wins."""

import difflib
import os
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from discreet.errors import ParameterError
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Role
from discreet.service.settings.gateway import GatewaySettings

__all__ = ["FROM_FILE", "PREFIX", "SETTINGS", "read_settings"]

PREFIX: Final = "DISCREET_SERVE_"
FROM_FILE: Final = "_FILE"  # DISCREET_SERVE_LEDGER_FILE names a file that holds the value
_TABLES: Final = {"answers_after", "issuers"}  # too much for a variable


def read_settings(
    file: Path | None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> GatewaySettings:
    """Read all settings and check them together. Paths in a file are relative to it.

    >>> told = {"DISCREET_SERVE_PORT": "8080", "DISCREET_SERVE_WORKERS": "2"}
    >>> found = read_settings(None, environment=told, flags={"port": 9000})
    >>> found.port, found.workers
    (9000, 2)
    """
    given: dict[str, Any] = {}
    if file is not None:
        given |= _in_file(file)
    given |= _in_environment(os.environ if environment is None else environment)
    given |= {name: value for name, value in (flags or {}).items() if value is not None}
    return GatewaySettings(**given)


def _in_file(file: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"{file}: there is no such file.", parameter="config") from None
    except OSError as error:
        told = f"{file} could not be read ({error.strerror})."
        raise ParameterError(told, parameter="config") from None
    except ValueError as error:
        raise ParameterError(f"{file.name} is no TOML: {error}", parameter="config") from None
    found: dict[str, Any] = {}
    for name, value in document.items():
        _check_known(name, SETTINGS, of=file.name)
        try:
            found[name] = _typed(name, value, folder=file.parent)
        except ParameterError as error:
            raise ParameterError(f"{file.name}: {error}", parameter=name) from None
    return found


def _in_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if variable.endswith(FROM_FILE) and name not in SETTINGS:
            name, plain = name.removesuffix(FROM_FILE.lower()), variable.removesuffix(FROM_FILE)
            if plain in environment:
                raise ParameterError(f"say {plain} or {variable}, not both.", parameter=variable)
            text = _contents(variable, Path(text))
        _check_known(name, SETTINGS - _TABLES, of="the environment", shown=variable)
        try:
            found[name] = _typed(name, text, folder=Path())
        except ParameterError as error:
            raise ParameterError(f"{variable}: {error}", parameter=variable) from None
    return found


def _contents(variable: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise ParameterError(
            f"{variable} names a file that cannot be read.", parameter=variable
        ) from None


def _check_known(name: str, known: frozenset[str], *, of: str, shown: str | None = None) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(sorted(known))}."
        raise ParameterError(
            f"{of} has no setting {shown or name} here. {hint}", parameter=shown or name
        )


@cache
def _kinds() -> dict[str, Any]:
    return typing.get_type_hints(GatewaySettings)


SETTINGS: Final = frozenset(field.name for field in fields(GatewaySettings))


def _typed(name: str, value: object, *, folder: Path) -> Any:
    """Return a value as its field has it, from TOML or from a text."""
    if name == "issuers":
        return _issuers(value)
    if name == "answers_after":
        return _seconds(value)
    if name in ("ledger", "records"):
        place = _text(name, value)
        return place if "://" in place else str(folder / place)
    kind = _kinds()[name]
    if name in ("datasets", "collections"):
        listed = value.split(",") if isinstance(value, str) else value
        if not isinstance(listed, list):
            raise ParameterError(f"{name} must be a list of files.", parameter=name)
        return tuple(folder / _text(name, one).strip() for one in listed)
    plain = [one for one in typing.get_args(kind) if one is not types.NoneType] or [kind]
    if plain[0] is Path:
        return folder / _text(name, value)
    return _PLAIN[plain[0]](name, value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"{name} must be a text.", parameter=name)
    return value


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, str):
            return int(value)
    except ValueError:
        value = None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ParameterError(f"{name} must be a whole number.", parameter=name)
    return value


def _number(name: str, value: object) -> float:
    try:
        if isinstance(value, str):
            return float(value)
    except ValueError:
        value = None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ParameterError(f"{name} must be a number.", parameter=name)
    return float(value)


def _yes_or_no(name: str, value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = words.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ParameterError(f"{name} must be true or false.", parameter=name)
    return found


_PLAIN: Final[Mapping[type, Callable[[str, object], Any]]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _yes_or_no,
}


def _seconds(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ParameterError(
            "answers_after must be a table of datasets.", parameter="answers_after"
        )
    return {str(name): _number(f"answers_after.{name}", one) for name, one in value.items()}


def _issuers(value: object) -> tuple[Issuer, ...]:
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        raise ParameterError("issuers must be tables such as [issuers.corp].", parameter="issuers")
    return tuple(_issuer(name, dict(facts)) for name, facts in value.items())


def _issuer(name: str, facts: dict[str, Any]) -> Issuer:
    where = f"issuers.{name}"
    found: dict[str, Any] = {}
    for key, value in facts.items():
        _check_known(key, _OF_ISSUER, of=where)
        found[key] = _of_issuer(key, value, at=f"{where}.{key}")
    missing = [key for key in ("url", "audience") if key not in found]
    if missing:
        raise ParameterError(f"{where}.{missing[0]} is missing.", parameter=where)
    try:
        return Issuer(name=name, **found)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}", parameter=where) from None


_OF_ISSUER: Final = frozenset(field.name for field in fields(Issuer)) - {"name"}


def _of_issuer(key: str, value: object, *, at: str) -> Any:
    if key == "roles":
        if not isinstance(value, dict):
            raise ParameterError(f"{at} must be a table of values and roles.", parameter=at)
        return {str(one): _roles(f"{at}.{one}", roles) for one, roles in value.items()}
    if key == "default_roles":
        return _roles(at, value)
    if key == "leeway":
        return _number(at, value)
    is_listed = key == "algorithms" or (key == "audience" and isinstance(value, list))
    return _texts(at, value) if is_listed else _text(at, value)


def _roles(at: str, value: object) -> tuple[Role, ...]:
    try:
        return tuple(Role(one) for one in _texts(at, value))
    except ValueError:
        raise ParameterError(f"{at} must be among {', '.join(Role)}.", parameter=at) from None


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ParameterError(f"{name} must be a list of texts.", parameter=name)
    return tuple(_text(name, one) for one in value)
