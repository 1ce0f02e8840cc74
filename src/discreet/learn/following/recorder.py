"""Follow every use of a trainable parameter through one forward and one backward pass."""

import copy
import functools
import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from discreet.errors import ParameterError
from discreet.learn.following.axis.labels import Axis
from discreet.learn.following.axis.refusals import kept_error
from discreet.learn.following.batch_tree import tensors
from discreet.learn.following.calls.call_log import CallLog, TorchCall, described
from discreet.learn.following.calls.matching import Diverged, Matching
from discreet.learn.following.calls.questions import LEAVES, QUESTIONS, SIZES_ASKED, not_done
from discreet.learn.following.contributions import Contribution, Dense, Lookup
from discreet.learn.norms.dispatch import wide


class Rooted(torch.autograd.Function):
    """Let a gradient arrive at a tensor that depends on no other."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, anchor: Tensor) -> Tensor:
        # In place: a view could not be changed in place by the layer that follows.
        ctx.mark_dirty(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None]:
        return None, None


@final
class SavedInput:
    """An input of an operation, for later, if nobody has changed it by then."""

    __slots__ = ("_tensor", "_version")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor, self._version = tensor.detach(), tensor._version

    def get(self) -> Tensor:
        """Return it as it was."""
        if self._tensor._version != self._version:
            raise ParameterError(
                "an input of a layer with trainable parameters was changed in place after the "
                "layer had used it. Nothing was released. Leave out inplace=True there.",
                parameter="model",
            )
        return self._tensor


@final
class Recorder(TorchFunctionMode):
    """Intercept the torch functions that meet a parameter, and keep what they leave behind.

    A parameter enters each operation detached: the backward pass forms no gradient of a weight.
    What it does form, the gradient of the operation's output, goes to the rule of that operation
    by a hook, together with the input. What is computed from parameters alone (a slice, a lookup
    of positions) is followed in the same way, and led back to the parameters at the end.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: tuple[Tensor, ...],
        approved: list[CallLog],
        *,
        batch: list[Tensor],
        units: int,
        rules: dict[Any, Any],
        expansions: dict[Any, Any],
        fallback: Callable[..., Any],
    ) -> None:
        super().__init__()
        self.units = units
        self.bits = 64  # the fewest that something was computed in
        self.contributions: dict[int, list[Contribution]] = {id(p): [] for p in parameters}
        self._followed: dict[int, Tensor] = {id(p): p for p in parameters}
        self._plain: dict[int, Tensor] = {id(p): p.detach() for p in parameters}
        self._lookups: dict[int, tuple[Tensor, Tensor]] = {}  # a followed lookup: table, index
        self._expected: dict[int, int] = {}
        self._matching = Matching(model, approved, batch, units)
        self._rules = rules
        self._expansions = expansions
        self._fallback = fallback
        self._is_backward = False
        self._anchor = torch.zeros((), requires_grad=True)
        self._axes: dict[int, Axis | None] = {}
        self.results: tuple[Axis | None, ...] = ()
        # A call that fails ends the pass: who catches the error would let one row decide for all.
        self._failed: Exception | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._failed is not None:
            raise self._failed
        try:
            return self._called(func, args, kwargs or {})
        except Exception as error:
            if self._is_backward:
                raise  # a checkpoint ends so what it computes again
            self._failed = _again_raised(error)
            raise

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in self._expansions:
            with self:
                return self._expansions[func](*args, **kwargs)
        if func in LEAVES and not self._is_backward and id(args[0]) not in self._followed:
            return not_done(
                func, args[0]
            )  # it would keep a raw gradient of each unit, which nobody needs
        if func in QUESTIONS:
            return func(*args, **kwargs)
        operands: list[Tensor] = []
        given = described((*args, *kwargs, *kwargs.values()) if kwargs else args, operands)
        followed = self._followed
        is_met = any(id(operand) in followed for operand in operands)
        if self._is_backward:
            return self._again(func, args, kwargs, operands, given)
        call = self._matching.call(func, operands, given)
        result = self._met(call, func, args, kwargs, operands) if is_met else func(*args, **kwargs)
        self._matching.mark(call, result)
        return result

    def _met(
        self, call: TorchCall, func: Any, args: Any, kwargs: Any, operands: list[Tensor]
    ) -> Any:
        """Let the rule of an operation follow what it does with a parameter."""
        self._axes = {id(t): axis for t, axis in zip(operands, call.operands, strict=True)}
        self.results = call.results
        if not any(call.operands) and not any(call.results):
            return self._follow(func, args, kwargs)
        return self._rules.get(func, self._fallback)(self, func, *args, **kwargs)

    # --- what rules ask and tell ---

    def axis(self, tensor: Tensor) -> Axis | None:
        """Return where an operand of the call under way counts the units."""
        return self._axes.get(id(tensor))

    @property
    def is_again(self) -> bool:
        """Whether a checkpoint computes its forward pass again: nothing is recorded then."""
        return self._is_backward

    def is_own(self, leaf: Tensor) -> bool:
        """Say whether a leaf of the graph is one that gets no gradient."""
        return leaf is self._anchor

    def is_followed(self, tensor: object) -> bool:
        """Say whether a tensor is a parameter, or was computed from parameters alone."""
        return id(tensor) in self._followed

    def plain(self, tensor: Tensor) -> Tensor:
        """Return a followed tensor as autograd shall see it: a constant."""
        found = self._plain.get(id(tensor))
        return tensor.detach() if found is None else found

    def by_unit(self, tensor: Tensor, axis: Axis) -> Tensor:
        """Bring the units to the front; several rows of a unit follow as an axis of their own."""
        if axis.dim:
            tensor = tensor.movedim(axis.dim, 0)
        if axis.outer != 1:
            tensor = tensor.unflatten(0, (axis.outer, self.units, axis.inner))
            return tensor.transpose(0, 1).flatten(1, 2)
        if axis.inner != 1:
            tensor = tensor.unflatten(0, (self.units, axis.inner))
        return tensor

    def rows_by_unit(self, tensor: Tensor, axis: Axis) -> Tensor:
        """Bring the rows of each unit together, along the first axis as before."""
        return self.by_unit(tensor, axis).flatten(0, 1) if axis.outer != 1 else tensor

    def watch(
        self, out: Tensor, *owners: Tensor, then: Callable[[Tensor], None], is_new: bool = False
    ) -> Tensor:
        """Call ``then`` with the gradient of ``out``, which uses the followed ``owners``.

        ``is_new`` says that an operation made ``out``, which nobody else sees yet. If that is
        another form of what it computed, then this is watched: torch forgets who watches a view
        that is changed in place.
        """
        if not torch.is_grad_enabled():
            return out
        self.bits = min(self.bits, 8 * out.dtype.itemsize)
        if is_new and out._is_view() and _is_whole(out):
            whole, shape = out._base, out.shape
            assert whole is not None
            is_rooted = out.requires_grad
            whole = self.watch(whole, *owners, then=lambda grad: then(grad.view(shape)))
            return out if is_rooted else whole.view(shape)
        if not out.requires_grad:
            out = Rooted.apply(out, self._anchor)  # type: ignore[no-untyped-call]
        if not self._is_backward:
            for owner in owners:
                self._expected[id(owner)] = self._expected.get(id(owner), 0) + 1
            out.register_hook(functools.partial(_quietly, then))
        return out

    def is_single(self, owner: Tensor) -> bool:
        """Say whether the forward pass used this tensor once: its gradient needs no other."""
        return self._expected[id(owner)] == 1

    def put(self, owner: Tensor, part: Contribution) -> None:
        """Keep what a use of a followed tensor contributes."""
        if id(owner) in self._lookups and isinstance(part, Dense):
            table, index = self._lookups[id(owner)]
            rows = part.grads.reshape(self.units, index.numel(), -1)
            part = Lookup(index.reshape(1, -1).expand(self.units, -1), rows, table.shape[0])
            owner = table
        elif self.is_single(owner):
            part = part.settled()
        self.contributions.setdefault(id(owner), []).append(part)

    # --- what is computed from parameters alone ---

    def _follow(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        for tensor in tensors(result):
            if tensor.requires_grad:
                self._followed[id(tensor)] = tensor
                self._plain[id(tensor)] = tensor.detach()
        if func is torch.nn.functional.embedding and not self._is_backward:
            index, table, *rest = args
            if id(table) in self.contributions and not kwargs and not any(_special(*rest)):
                self._lookups[id(result)] = (table, index)
        return result

    def _again(
        self, func: Any, args: Any, kwargs: Any, operands: list[Tensor], given: tuple[Any, ...]
    ) -> Any:
        """Do what the forward pass did, unwatched: a checkpoint computes it a second time."""
        call = self._matching.again(func, operands, given)
        if call is None:
            if func in SIZES_ASKED and _is_asked_by_a_checkpoint():
                return func(*args, **kwargs)
            if not operands and not any(tensors(found := func(*args, **kwargs))):
                return found  # such as a switch
            raise ParameterError(
                f"{getattr(func, '__name__', func)} in the backward pass is not what the forward "
                "pass did: a checkpoint that computes something else, or a hook. Nothing was "
                "released.",
                parameter="model",
            )
        if not any(id(t) in self._followed for t in operands):
            result = func(*args, **kwargs)
        elif all(id(t) in self._followed for t in operands):
            result = self._follow(func, args, kwargs)
        else:
            self._axes = {}
            result = self._rules.get(func, self._fallback)(self, func, *args, **kwargs)
        self._matching.mark(call, result)
        return result

    def finish(self, losses: Any) -> None:
        """Compare what the forward pass returned, too."""
        if self._failed is not None:
            raise self._failed
        self._matching.finish(losses)

    def forget(self) -> None:
        """Let go of everything: hooks hold the recorder, and what it keeps leads to the hooks."""
        for kept in (self.contributions, self._followed, self._plain, self._lookups, self._axes):
            kept.clear()
        self._matching.forget()

    def check_nothing_stays(self) -> None:
        """Refuse a pass of which a tensor of rows is still there, when it is over."""
        made = self._matching.made
        for generation in (None, 1, 2):  # some models leave circles behind
            if generation is not None:
                gc.collect(generation)
            if all(one() is None for one in made):
                return
        raise kept_error()

    def begin_backward(self) -> None:
        """Stop recording uses: the forward pass is over."""
        self._is_backward = True

    def lead_back(self) -> None:
        """Turn contributions of what was computed from parameters into those of the parameters."""
        for key, parts in list(self.contributions.items()):
            tensor = self._followed[key]
            if tensor.is_leaf or not parts:
                continue
            grads = sum(part.dense() for part in parts)
            del self.contributions[key]
            leaves = [p for p in self._followed.values() if p.is_leaf]
            found = torch.autograd.grad(
                tensor,
                leaves,
                grad_outputs=grads.to(tensor.dtype),  # type: ignore[union-attr]
                is_grads_batched=True,
                allow_unused=True,
                retain_graph=True,
            )
            for leaf, grad in zip(leaves, found, strict=True):
                if grad is not None:
                    self.contributions[id(leaf)].append(Dense(wide(grad)))


def _is_asked_by_a_checkpoint() -> bool:
    """Say whether it is torch that compares sizes, not a user who counts examples."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "torch.utils.checkpoint"


def _again_raised(error: Exception) -> Exception:
    """Return what to raise once more, without the frames of the first time."""
    if isinstance(error, (Diverged, ParameterError)):
        again = copy.copy(error)
        return again.with_traceback(None)
    return RuntimeError(f"a torch function has failed in the forward pass: {type(error).__name__}")


def _quietly(then: Callable[[Tensor], None], grad: Tensor) -> None:
    """Run a rule's hook outside the mode: what it computes is no use of a parameter."""
    with torch._C.DisableTorchFunction():
        then(grad)


def _is_whole(view: Tensor) -> bool:
    """Say whether a view has all numbers of what it is a view of, in their order."""
    base = view._base
    if base is None or base.numel() != view.numel() or (base.is_leaf and base.requires_grad):
        return False
    return base.is_contiguous() and view.is_contiguous()


def _special(
    padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0, *others: bool
) -> tuple[bool, ...]:
    """Say in what an embedding does more than read rows."""
    return (padding_idx is not None, max_norm is not None, *others)
