"""What a loss function and a model hold in Python: a recorded step does not look at it again."""

import functools
import random
from collections.abc import Hashable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

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
    attributes of modules and other objects, and collections, some levels deep; tensors are the
    same if they lie in the same place, since a recorded step reads them anew.

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
    seen: set[int] = set()
    return tuple(_state(thing, _DEPTH, seen) for thing in things)


def _state(thing: Any, depth: int, seen: set[int]) -> Hashable:
    if isinstance(thing, Same):
        return thing
    if isinstance(thing, _PLAIN):
        return (type(thing), repr(thing) if isinstance(thing, float) else thing)
    if isinstance(thing, Tensor):
        return (Same(thing), thing.data_ptr(), thing.shape)
    if not depth or id(thing) in seen or isinstance(thing, type | ModuleType):
        return Same(thing)
    seen.add(id(thing))
    if isinstance(thing, nn.Module):
        parts = [*_attributes(thing.__dict__), *thing.children()]
        return tuple(_state(one, depth - 1 if _is_inner(one) else depth, seen) for one in parts)
    if isinstance(thing, dict):
        thing = [*thing, *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return (len(thing), *(_state(one, depth - 1, seen) for one in list(thing)[:_MANY]))
    held = _held_by(thing)
    return Same(thing) if held is None else tuple(_state(one, depth - 1, seen) for one in held)


def _is_inner(thing: object) -> bool:
    """Say whether it is a level deeper: a layer of a model is not."""
    return not isinstance(thing, nn.Module)


def _attributes(own: dict[str, Any]) -> Iterator[Any]:
    for name, value in own.items():
        if name in ("_parameters", "_buffers"):
            yield from value.values()
        elif name == "training" or not name.startswith("_"):
            yield value


def _held_by(thing: Any) -> list[Any] | None:
    if isinstance(thing, MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or () if is_full(cell)]
        names = thing.__code__.co_names
        world = [thing.__globals__[name] for name in names if name in thing.__globals__]
        given = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        return [Same(thing.__code__), *cells, *given, *world]
    own = getattr(thing, "__dict__", None)
    return None if own is None else [Same(thing), *own.values()]


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
