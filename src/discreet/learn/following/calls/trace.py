"""Run a model and a loss once for any number of units, and say where every tensor counts them."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import compress
from typing import Any, Final, final

import torch
from torch import Tensor, nn
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from discreet.errors import ParameterError
from discreet.learn.following.axis.dispatching import Following
from discreet.learn.following.axis.labels import Axis, axis_of, put_axis
from discreet.learn.following.axis.refusals import kept_error, noticed_refusals, refusal
from discreet.learn.following.axis.stand_ins import STAND_INS
from discreet.learn.following.axis.symbolic import UnitCount, leaf_like
from discreet.learn.following.batch_tree import leaves, tensors, with_leaves
from discreet.learn.following.calls.call_log import (
    ORIGIN,
    WIDE,
    CallLog,
    TorchCall,
    alias_code,
    described,
    outside_code,
    symbols_marked,
)
from discreet.learn.following.calls.chance import Chance
from discreet.learn.following.calls.closed_doors import closed_doors, unspoken
from discreet.learn.following.calls.custom_functions import refusing_custom_functions
from discreet.learn.following.calls.questions import (
    IDENTITIES,
    LEAVES,
    QUESTIONS,
    SIZES_ASKED,
    name_of,
    not_done,
)

_HOOK: Final = "changes gradients behind the rules"
_AWAY: Final = "leaves what is followed"
_REFUSED: Final = {
    **dict.fromkeys(("register_hook", "register_post_accumulate_grad_hook", "grad_fn"), _HOOK),
    **dict.fromkeys(("data", "set_", "apply_", "map_", "map2_", "numpy", "__array__"), _AWAY),
    **dict.fromkeys(("__dlpack__", "data_ptr", "untyped_storage", "storage", "tolist"), _AWAY),
    **dict.fromkeys(("__reduce_ex__", "__deepcopy__"), _AWAY),
    **dict.fromkeys(("_reshape_alias", "as_subclass"), _AWAY),
    "backward": "computes gradients of the loss's own",
}


@final
class _Writing(TorchFunctionMode):
    """Write down every call of a torch function of a trace."""

    def __init__(
        self,
        model: nn.Module,
        following: Following,
        expansions: dict[Any, Any],
        batch: list[Tensor],
    ) -> None:
        super().__init__()
        self._model = model
        self.log = CallLog()
        self._following, self._expansions = following, expansions
        self._outside: dict[int, tuple[int, int]] = {}
        self._held: list[Tensor] = []
        for tensor in batch:
            self._meet(tensor)
        self.log.outside = [None] * len(batch)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self._expansions:
            with self:
                return self._expansions[func](*args, **kwargs)
        if func in LEAVES and axis_of(args[0]) is not None:
            return not_done(func, args[0])  # the recorder does not do it either
        if func in QUESTIONS:
            return func(*args, **kwargs)
        operands: list[Tensor] = []
        given = described((*args, *kwargs, *kwargs.values()), operands)
        origins = tuple(map(self.origin, operands))
        axes = tuple(map(axis_of, operands))
        name = name_of(func)
        if name.partition(".")[0] in _REFUSED and any(axes):
            raise refusal(name, _REFUSED[name.partition(".")[0]])
        if any(callable(one) and not isinstance(one, (type, Tensor)) for one in _all(args, kwargs)):
            raise refusal(name, "is given a function, whose calls can not be followed")
        try:
            with self._following.count.inside():
                result = STAND_INS.get(func, func)(*args, **kwargs)
        except RuntimeError as error:  # of an operation without a symbolic form
            if "symbolic sizes" not in str(error):
                raise
            raise refusal(name, "can not be followed") from None
        place = len(self.log.calls)
        outs = list(tensors(result))
        if any(axes):
            _check_result(func, name, axes, result, outs)
        code = origins[0] & ~1 if func in IDENTITIES else 2 * place * WIDE
        for number, tensor in enumerate(outs):
            origin = (self.log, code + 2 * number, tensor._version, axis_of(tensor) is not None)
            setattr(tensor, ORIGIN, origin)
        self.log.calls.append(
            TorchCall(
                func=func,
                code=code,
                origins=origins,
                given=symbols_marked(given, self.log.units),
                operands=axes,
                results=tuple(map(axis_of, outs)),
                shapes=symbols_marked(tuple(tuple(t.shape) for t in outs), self.log.units),
            )
        )
        return result

    def origin(self, tensor: Tensor) -> int:
        """Return where a tensor came from."""
        found = tensor.__dict__.get(ORIGIN)
        if found is not None and found[0] is self.log and id(tensor) not in self._outside:
            return int(found[1]) + int(tensor._version != found[2])
        if id(tensor) not in self._outside:
            if axis_of(tensor) is not None or isinstance(tensor, FakeTensor):
                raise refusal(
                    "a tensor", "was computed from examples in a way that can not be followed"
                )
            if found is not None and found[3]:
                raise refusal("a tensor", "was kept from the examples of an earlier step")
            if not any(
                tensor is own for own in (*self._model.parameters(), *self._model.buffers())
            ):
                alias = alias_code(self._model, tensor)
                if alias is not None:
                    return alias
            self._meet(tensor)
            self.log.outside.append(tensor)
            self.log.shapes.append(tensor.shape)
        place, version = self._outside[id(tensor)]
        return outside_code(place, is_changed=tensor._version != version)

    def _meet(self, tensor: Tensor) -> None:
        self._outside[id(tensor)] = (len(self._outside), tensor._version)
        self._held.append(tensor)


def _all(args: Any, kwargs: Any) -> Iterator[Any]:
    yield from args
    yield from kwargs.values()


def _check_result(
    func: Any, name: str, axes: tuple[Axis | None, ...], result: Any, outs: list[Tensor]
) -> None:
    if func in SIZES_ASKED:
        if name == "__len__" and axes[0] is not None and axes[0].dim == 0:
            raise refusal(
                "the number of examples",
                "is used as a number",
                advice="Do not divide by it, count with it or decide by it: the noisy sum is "
                "divided by the expected size.",
            )
        return
    if not outs and result is not None:
        raise refusal(
            name,
            "reads a value of the examples into Python, which may then decide what is computed",
        )


def traced(
    model: nn.Module,
    loss_fn: Callable[[nn.Module, Any], Any],
    batch: Any,
    *,
    units: int,
    expansions: dict[Any, Any],
) -> CallLog:
    """Return the calls of a forward pass with their axes, or refuse one that mixes units.

    Claim: the loss of a row depends on the rows of its unit, on what is the same for everybody, and
    on chance of its own; so does its gradient. See docs/proofs/unit_axis.md.
    """
    _require_tensors(batch)
    count = UnitCount()
    following = Following(count)
    rows = [
        leaf_like(following.mode, count, tensor, tensor.shape[0] // units)
        for tensor in leaves(batch)
    ]
    for mine, tensor in zip(rows, leaves(batch), strict=True):
        put_axis(mine, Axis(0, 1, tensor.shape[0] // units))
        following.followed.append(weakref.ref(mine))
    devices = sorted({t.device.index or 0 for t in rows if t.device.type == "cuda"})
    writing = _Writing(model, following, expansions, rows)
    symbolic = with_leaves(batch, iter(rows))
    with ExitStack() as stack:
        stack.enter_context(_as_before(model, following, devices))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(refusing_custom_functions())
        stack.enter_context(enable_python_dispatcher())  # of composites that know symbolic sizes
        with following, writing, unspoken(count), closed_doors(), noticed_refusals():
            losses = loss_fn(model, symbolic)
        _check_losses(losses, rows[0])
        writing.log.losses = writing.origin(losses)
        del losses, symbolic, rows, mine
        writing._held.clear()
        log = writing.log
        del writing
        _check_nothing_stays(following, count)
    return log


def _check_losses(losses: Any, first: Tensor) -> None:
    if not isinstance(losses, Tensor) or losses.dim() != 1:
        shape = (
            f"{losses.dim()} dimensions" if isinstance(losses, Tensor) else type(losses).__name__
        )
        raise ParameterError(
            f"loss_fn must return one loss for each row of the batch, of shape (rows,), got "
            f"{shape}. Use reduction='none', and average over what belongs to one row.",
            parameter="loss_fn",
        )
    mine, rows = axis_of(losses), axis_of(first)
    assert rows is not None
    if mine is None or (mine.each, mine.kind == "index") != (rows.each, False):
        raise ParameterError(
            "loss_fn must return one loss for each row of the batch, of shape (rows,). Use "
            "reduction='none', and average over what belongs to one row.",
            parameter="loss_fn",
        )
    if mine.kind != "same" and (mine.outer, mine.inner) != (rows.outer, rows.inner):
        raise refusal("loss_fn", "returns the losses in another order than the rows")


def _require_tensors(tree: Any) -> None:
    """Refuse rows that Python could read without anybody's noticing."""
    if isinstance(tree, Tensor) or tree is None:
        return
    if isinstance(tree, dict):
        for value in tree.values():
            _require_tensors(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            _require_tensors(value)
    else:
        raise ParameterError(
            f"a batch holds an object of type {type(tree).__name__}: what is computed from it can "
            "not be followed. Let the rows be tensors. Nothing was spent.",
            parameter="dataset",
        )


@contextmanager
def _as_before(model: nn.Module, following: Following, devices: list[int]) -> Iterator[None]:
    """Leave the model, its attributes and all chance as they were."""
    held = [(module, dict(module.__dict__)) for module in model.modules()]
    inner = [
        (own, dict(own))
        for _, own_dict in held
        for name in ("_buffers", "_parameters", "_modules")
        if isinstance(own := own_dict.get(name), dict)
    ]
    chance = Chance.now()
    with torch.random.fork_rng(devices), torch.enable_grad():
        try:
            yield
        finally:
            chance.restore()
            following.restore()
            for module, own in held:
                module.__dict__.clear()
                module.__dict__.update(own)
            for mutable, own in inner:
                mutable.clear()
                mutable.update(own)


def _check_nothing_stays(following: Following, count: UnitCount) -> None:
    """Refuse a pass that keeps anything of the examples, or their number, for a later one."""
    if any(one() is not None for one in following.followed):
        gc.collect()
    if any(one() is not None for one in following.followed):
        raise kept_error()
    # In C from end to end: a process that has done much holds a million objects.
    things = gc.get_objects()
    numbers = compress(things, map(_NUMBERS.__contains__, map(type, things)))
    if any(_is_kept(number, count) for number in numbers):
        raise ParameterError(
            "the forward pass keeps the number of examples, in an attribute or a variable that "
            "outlives the step. Keep nothing of the rows. Nothing was released.",
            parameter="model",
        )


_NUMBERS: Final = frozenset({torch.SymInt, torch.SymFloat, torch.SymBool})


def _is_kept(thing: object, count: UnitCount) -> bool:
    return thing is not count.units and thing.node.shape_env is count  # type: ignore[attr-defined]
