"""What a loss function and a model hold in Python: a recorded step does not look at it again."""

import functools
from collections.abc import Callable, Hashable, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast, final

from torch import Tensor, nn

from discreet.learn.following.function_identity import is_full

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEPTH = 5  # how far what is held is looked into
_MANY = 256  # values of a collection that are looked at
_GONE: Final = object()


@final
class PythonState:
    """The values that functions and modules hold, to be compared with later ones.

    Looked at are numbers and texts in variables of functions (enclosed, default and global ones),
    attributes of modules, and attributes of other objects that the code speaks of, some levels
    deep; tensors are the same if they lie in the same place, since a recorded step reads them anew.

    >>> def scaled(factor):
    ...     return lambda model, rows: factor * model(rows)
    >>> state = PythonState(scaled(2.0))
    >>> state.is_still(scaled(2.0)), state.is_still(scaled(3.0))
    (True, False)
    >>> layer = nn.Dropout(0.1)
    >>> state = PythonState(layer)
    >>> layer.p = 0.2
    >>> state.is_still(layer)
    False
    """

    def __init__(self, *things: object) -> None:
        self._things = things
        self._met: set[int] = set()
        self._kinds: list[tuple[object, Any]] = []  # of everything that was met, in order
        self._named: list[tuple[Mapping[Any, Any], Any, object]] = []
        self._listed: list[tuple[Any, list[Any]]] = []
        self._cells: list[tuple[Any, object]] = []
        self._tensors: list[tuple[Tensor, int]] = []
        for thing in things:
            self._look(thing, _DEPTH, frozenset())

    def is_still(self, *things: object) -> bool:
        """Say whether these things hold now what was held then."""
        if not all(map(_is_it, things, self._things)):
            other = PythonState(*things)  # such as a lambda in a loop: a new one each time
            return len(other._kinds) == len(self._kinds) and all(
                kind is was and _is_like(value, old)
                for (kind, value), (was, old) in zip(other._kinds, self._kinds, strict=True)
            )
        # In every step: where each place holds the same object, so does whatever is behind it.
        return (
            all(_is_like(held.get(name, _GONE), value) for held, name, value in self._named)
            and all(
                len(held) == len(old) and all(map(_is_like, _values(held), old))
                for held, old in self._listed
            )
            and all(is_full(cell) and _is_like(cell.cell_contents, v) for cell, v in self._cells)
            and all(tensor.data_ptr() == place for tensor, place in self._tensors)
        )

    def _look(self, thing: Any, depth: int, spoken: frozenset[str]) -> None:
        """Look at a thing, of whose attributes the code speaks that got to it."""
        if isinstance(thing, _PLAIN):
            self._kinds.append((type(thing), thing))
            return
        if isinstance(thing, FunctionType):
            self._kinds.append((thing.__code__, None))
        elif isinstance(thing, MethodType | functools.partial):
            self._kinds.append((type(thing), None))
        else:
            self._kinds.append((thing, None))
        if isinstance(thing, Tensor):
            self._tensors.append((thing, thing.data_ptr()))
            return
        if depth <= 0 or id(thing) in self._met or isinstance(thing, type | ModuleType):
            return
        self._met.add(id(thing))
        self._look_into(thing, depth, spoken)

    def _look_into(self, thing: Any, depth: int, spoken: frozenset[str]) -> None:
        deeper = functools.partial(self._look, depth=depth - 1)
        if isinstance(thing, dict | list | tuple | set | frozenset):
            self._collection(thing, functools.partial(deeper, spoken=spoken))
        elif isinstance(thing, nn.Module):
            spoken = _with_methods(_class_of(thing), spoken | {"forward"})
            own = thing.__dict__
            for name in ("_parameters", "_buffers"):
                self._collection(own[name], functools.partial(deeper, spoken=spoken))
            for name in [name for name in own if not name.startswith("_")]:
                self._attribute(own, name, functools.partial(deeper, spoken=spoken))
            self._collection(own["_modules"], lambda one: self._look(one, depth, spoken))
        elif isinstance(thing, FunctionType):
            spoken |= _names(thing.__code__)
            then = functools.partial(deeper, spoken=spoken)
            for cell in thing.__closure__ or ():
                if is_full(cell):
                    self._cells.append((cell, cell.cell_contents))
                    then(cell.cell_contents)
            for given in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()):
                then(given)
            for name in sorted(spoken & thing.__globals__.keys()):
                self._attribute(thing.__globals__, name, then)
        elif isinstance(thing, MethodType):
            deeper(thing.__func__, spoken=spoken)
            deeper(thing.__self__, spoken=spoken | _names(thing.__func__.__code__))
        elif isinstance(thing, functools.partial):
            for one in (thing.func, *thing.args, *thing.keywords.values()):
                deeper(one, spoken=spoken)
        elif hasattr(thing, "__dict__"):
            spoken = _with_methods(_class_of(thing), spoken | {"__call__"})
            for name in sorted(spoken & vars(thing).keys()):
                self._attribute(vars(thing), name, functools.partial(deeper, spoken=spoken))

    def _attribute(self, own: Mapping[str, Any], name: str, then: Callable[[Any], None]) -> None:
        self._named.append((own, name, own[name]))
        then(own[name])

    def _collection(self, thing: Any, then: Callable[[Any], None]) -> None:
        found = _values(thing)
        self._listed.append((thing, found))
        for one in found[:_MANY]:
            then(one)


def _values(thing: Any) -> list[Any]:
    return list(thing.values() if isinstance(thing, dict) else thing)


def _is_it(one: object, other: object) -> bool:
    if isinstance(one, MethodType) and isinstance(other, MethodType):
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    return one is other


def _is_like(one: object, other: object) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and isinstance(one, _PLAIN) and one == other


def _class_of(thing: object) -> Hashable:
    return cast("Hashable", type(thing))


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> frozenset[str]:
    """Return the names that code speaks of, functions inside of it included."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(code.co_names).union(*inner)


@functools.lru_cache(maxsize=4096)
def _with_methods(kind: Hashable, spoken: frozenset[str]) -> frozenset[str]:
    """Add what the methods of a class speak of, if they are spoken of themselves."""
    todo, done = set(spoken), set(spoken)
    while todo:
        function = getattr(kind, todo.pop(), None)
        if isinstance(function, property):
            function = function.fget
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            new = _names(code) - done
            done |= new
            todo |= new
    return frozenset(done)
