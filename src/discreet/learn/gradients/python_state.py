"""What a loss function and a model hold in Python: a recorded step does not look at it again."""

import functools
import random
from collections.abc import Hashable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast, final

import numpy as np
import torch
from torch import Tensor, nn

from discreet.learn.following.function_identity import Same, is_full

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEPTH = 5  # how far what is held is looked into
_MANY = 256  # values of a collection that are looked at


def python_state(*things: object) -> Hashable:
    """Return what is equal as long as the values that things hold are.

    Looked at are numbers and texts in variables of functions (enclosed, default and global ones),
    attributes of modules, and attributes of other objects that the code speaks of, some levels
    deep; tensors are the same if they lie in the same place, since a recorded step reads them anew.

    >>> def scaled(factor):
    ...     return lambda model, rows: factor * model(rows)
    >>> python_state(scaled(2.0)) == python_state(scaled(3.0))
    False
    >>> layer = nn.Dropout(0.1)
    >>> before = python_state(layer)
    >>> layer.p = 0.2
    >>> python_state(layer) == before
    False
    """
    look = _Look()
    return tuple(look.at(thing, _DEPTH, frozenset()) for thing in things)


@final
class _Look:
    """One look at what is held; an object that was met before is looked at once."""

    def __init__(self) -> None:
        self._met: set[int] = set()

    def at(self, thing: Any, depth: int, spoken: frozenset[str]) -> Hashable:
        """Return the state of a thing, of whose attributes the code speaks that got to it."""
        if isinstance(thing, _PLAIN):
            return (type(thing), repr(thing) if isinstance(thing, float) else thing)
        if isinstance(thing, Tensor):
            return (Same(thing), thing.data_ptr(), thing.shape)
        if depth <= 0 or id(thing) in self._met or isinstance(thing, type | ModuleType):
            return Same(thing)
        self._met.add(id(thing))
        if isinstance(thing, nn.Module):
            spoken = _with_methods(_class_of(thing), spoken | {"forward"})
            layers = tuple(self.at(one, depth, spoken) for one in thing.children())
            own = tuple(self.at(one, depth - 1, spoken) for one in _attributes(thing.__dict__))
            return (Same(thing), own, layers)
        if isinstance(thing, FunctionType | MethodType):
            spoken |= _names(thing.__code__)
        held = _held_by(thing, spoken)
        if held is None:
            return Same(thing)
        spoken = _with_methods(_class_of(thing), spoken)
        return (_kind(thing), *(self.at(one, depth - 1, spoken) for one in held[:_MANY]))


def _kind(thing: Any) -> Hashable:
    if isinstance(thing, FunctionType):
        return Same(thing.__code__)  # a lambda in a loop is a new one each time
    if isinstance(thing, dict | list | tuple | set | frozenset):
        return (type(thing), len(thing))
    if isinstance(thing, MethodType | functools.partial):
        return type(thing).__name__
    return Same(thing)


def _attributes(own: dict[str, Any]) -> Iterator[Any]:
    for name, value in own.items():
        if name in ("_parameters", "_buffers"):
            yield from value.values()
        elif not name.startswith("_"):
            yield value


def _held_by(thing: Any, spoken: frozenset[str]) -> list[Any] | None:
    """Return what a thing that is no module holds, or None if it can not be told."""
    if isinstance(thing, dict):
        return [*thing, *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or () if is_full(cell)]
        world = [thing.__globals__[name] for name in sorted(spoken & thing.__globals__.keys())]
        given = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        return [*cells, *given, *world]
    own = getattr(thing, "__dict__", None)
    if own is None:
        return None
    spoken = _with_methods(_class_of(thing), spoken | {"__call__"})
    return [own[name] for name in sorted(spoken & own.keys())]


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


def python_chance() -> Hashable:
    """Return what changes whenever chance is drawn on the host: a recorded step does not draw it.

    >>> before = python_chance()
    >>> _ = random.random()
    >>> python_chance() == before
    False
    """
    numpy = np.random.get_state()  # noqa: NPY002 - a model may use it
    drawn = (numpy[1].tobytes(), numpy[2])  # type: ignore[index]
    return (random.getstate(), drawn, torch.random.get_rng_state().numpy().tobytes())
