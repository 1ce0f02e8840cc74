"""Names in declarations, where upper and lower case make no difference."""

from collections.abc import Iterable

from discreet.errors import ParameterError

__all__ = ["check_names", "fold", "is_same"]


def check_names(names: Iterable[str], what: str) -> None:
    """Refuse names that are empty or cannot be told apart.

    >>> check_names(["age", "Age"], "column")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: 'age' and 'Age' would be the same column: upper and lower case
    make no difference.
    """
    seen: dict[str, str] = {}
    for name in names:
        if not name:
            raise ParameterError(f"a {what} must have a name.", parameter=what)
        if fold(name) in seen:
            raise ParameterError(
                f"{seen[fold(name)]!r} and {name!r} would be the same {what}: upper and lower "
                "case make no difference.",
                parameter=what,
            )
        seen[fold(name)] = name


def fold(name: str) -> str:
    """Forget upper and lower case as databases do, which know those of ASCII only.

    >>> fold("Größe"), fold("GRÖSSE")
    ('größe', 'grÖsse')
    """
    return "".join(char.lower() if char.isascii() else char for char in name)


def is_same(one: str, other: str | None) -> bool:
    """Say whether two names mean the same.

    >>> is_same("User_ID", "user_id")
    True
    """
    return other is not None and fold(one) == fold(other)
