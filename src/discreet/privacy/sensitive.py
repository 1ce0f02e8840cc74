"""A box for values that have not been noised yet."""

from collections.abc import Callable
from typing import Generic, Never, SupportsIndex, TypeVar, final

from discreet.errors import DataError, SensitiveValue

T = TypeVar("T")
S = TypeVar("S")

REDACTED = "Sensitive(<redacted>)"


@final
class Sensitive(Generic[T]):
    """Carry an exact, un-noised value without letting it show.

    Printing, formatting and logging give a placeholder; copying, pickling, comparing, hashing,
    iterating and testing for truth are refused. The one way out has a name that reviews and
    ``grep`` can find: :meth:`reveal_without_noise`. This guards against accidents, not against
    code that wants to break in.

    >>> total = Sensitive(41_250)
    >>> total, f"{total:,.2f}", [total]
    (Sensitive(<redacted>), 'Sensitive(<redacted>)', [Sensitive(<redacted>)])
    >>> total.map(lambda x: x // 2).reveal_without_noise()
    20625
    >>> total == 41_250
    Traceback (most recent call last):
        ...
    discreet.errors.SensitiveValue: a Sensitive value cannot be compared: the outcome would tell \
something about it. Release it through a mechanism first.
    """

    # Slots, so that vars() and __dict__ do not exist; mangled, so that dir() shows no short cut.
    __slots__ = ("__value",)

    # numpy would otherwise wrap the box into an object array and compare behind its back.
    __array_ufunc__ = None

    def __init__(self, value: T, /) -> None:
        self.__value = value

    def reveal_without_noise(self) -> T:
        """Return the exact value. Only a mechanism about to add noise should.

        >>> Sensitive(3).reveal_without_noise()
        3
        """
        return self.__value

    def map(self, function: Callable[[T], S], /) -> "Sensitive[S]":
        """Apply a function inside the box.

        An exception raised inside is replaced by one that shows its type alone, since messages
        such as int()'s repeat the value.

        >>> Sensitive([1, 2, 3]).map(sum)
        Sensitive(<redacted>)
        >>> Sensitive("secret").map(int)
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: the function given to Sensitive.map raised ValueError; its \
message is withheld because it may show the value.
        """
        try:
            return Sensitive(function(self.__value))
        except Exception as error:
            kind = type(error).__name__
        # Raised out here, the new error has no __context__ that a logger could follow inside.
        raise DataError(
            f"the function given to Sensitive.map raised {kind}; its message is withheld because "
            "it may show the value."
        )

    def __repr__(self) -> str:
        return REDACTED

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, spec: str, /) -> str:
        return REDACTED

    def __copy__(self) -> Never:
        raise _refusal("copied")

    def __deepcopy__(self, memo: object, /) -> Never:
        raise _refusal("copied")

    def __getstate__(self) -> Never:
        raise _refusal("pickled")

    def __reduce__(self) -> Never:
        raise _refusal("pickled")

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> Never:
        raise _refusal("pickled")

    def __eq__(self, other: object, /) -> Never:
        raise _refusal("compared")

    def __ne__(self, other: object, /) -> Never:
        raise _refusal("compared")

    def __lt__(self, other: object, /) -> Never:
        raise _refusal("compared")

    def __le__(self, other: object, /) -> Never:
        raise _refusal("compared")

    def __gt__(self, other: object, /) -> Never:
        raise _refusal("compared")

    def __ge__(self, other: object, /) -> Never:
        raise _refusal("compared")

    def __hash__(self) -> Never:
        raise _refusal("hashed")

    def __bool__(self) -> Never:
        raise _refusal("tested for truth")

    def __len__(self) -> Never:
        raise _refusal("measured")

    def __iter__(self) -> Never:
        raise _refusal("iterated over")

    def __contains__(self, item: object, /) -> Never:
        raise _refusal("searched")

    def __array__(self, *args: object, **kwargs: object) -> Never:
        raise _refusal("turned into an array")


def _refusal(verb: str) -> SensitiveValue:
    if verb in ("copied", "pickled"):
        why = "a copy could leave the process or outlive its protection"
    else:
        why = "the outcome would tell something about it"
    return SensitiveValue(
        f"a Sensitive value cannot be {verb}: {why}. Release it through a mechanism first."
    )
