"""The sum of clipped gradients of a micro-batch, from one forward and one backward pass."""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn.choices.adaptive import AdaptiveState
from discreet.learn.choices.clipping import Clipping
from discreet.learn.following.batch_tree import leaves, of_units, with_leaves
from discreet.learn.following.calls.call_log import CallLog
from discreet.learn.following.calls.chance import Chance
from discreet.learn.following.calls.closed_doors import closed_doors
from discreet.learn.following.calls.custom_functions import refusing_custom_functions
from discreet.learn.following.calls.matching import Diverged
from discreet.learn.following.calls.trace import traced
from discreet.learn.following.calls.unread_masks import unread_masks
from discreet.learn.following.contributions import Contribution, joined
from discreet.learn.following.expansions import EXPANSIONS, backward
from discreet.learn.following.function_identity import identity_of
from discreet.learn.following.recorder import Recorder, Rooted
from discreet.learn.gradients.flat_buffer import FlatGradient
from discreet.learn.gradients.loss_function import LossFunction, checked_losses
from discreet.learn.gradients.norm_bounds import NormBounds
from discreet.learn.gradients.self_check import check_gradients
from discreet.learn.gradients.small_gradients import SmallGradients
from discreet.learn.rules.fallback import fallback
from discreet.learn.rules.table import RULES

_TRIES = 8  # how often a trace may find nothing new where chance decides what a pass does


@final
@dataclass(frozen=True, slots=True, repr=False)
class Clipped:
    """What was computed from raw data on the way: for diagnostics only, never private."""

    norms: Tensor
    factors: Tensor
    losses: Tensor
    nulls: Tensor | None = None  # which units have no gradient at all, where that matters

    @property
    def lengths(self) -> Tensor:
        """The norms, 0 for units without a gradient (whose bounds allow for what underflows)."""
        return self.norms if self.nulls is None else self.norms.masked_fill(self.nulls[:, None], 0)

    def first(self, units: int, rows: int) -> "Clipped":
        """Return those of the first units."""
        nulls = None if self.nulls is None else self.nulls[:units]
        return Clipped(self.norms[:units], self.factors[:units], self.losses[:rows], nulls)


@final
class GradientEngine:
    """Add clipped per-unit gradients to one flat buffer.

    Claim: what one unit adds to the buffer has an L2 norm of at most ``clipping.sensitivity``
    (before the float summation, see ``docs/proofs/gradient_noise.md``), whatever the unit's rows
    are and whatever is in the rest of the batch; and it is the unit's gradient times a factor.

    Why: the gradient of unit i is ``sum over uses of a parameter`` of what the chain rule says
    (``docs/proofs/clipping.md``), its norm is computed from the very records that the weighted
    sum is formed of, and the factor takes the rounding of these two computations into account.
    """

    def __init__(self, model: nn.Module, *, clipping: Clipping, is_checked: bool = True) -> None:
        self.model = model
        self._is_checked = is_checked
        self._checked: set[Any] = set()
        self.flat = FlatGradient(model)
        self._places = {id(p): i for i, p in enumerate(self.flat.parameters)}
        self._approved: dict[Any, list[CallLog]] = {}
        self.refusal: str | None = None  # why a trace was refused
        self.is_spoilt = torch.zeros((), dtype=torch.bool, device=self.flat.buffer.device)
        self.clipping = clipping

    @property
    def clipping(self) -> Clipping:
        """How gradients are clipped; may be changed between batches."""
        return self._clipping

    @clipping.setter
    def clipping(self, clipping: Clipping) -> None:
        self._clipping = clipping
        self._groups = clipping.groups(self.flat.names)

    def accumulate(
        self, loss_fn: LossFunction, batch: Any, *, units: int, is_careful: bool = True
    ) -> Clipped:
        """Add the clipped gradients of a micro-batch to the buffer.

        A unit whose gradient is not finite adds nothing. To look for one, the device must be
        waited for: ``is_careful=False`` sets ``is_spoilt`` instead, and then the whole sum has to
        be thrown away and computed again.
        """
        self.try_out(loss_fn, batch, units=units)
        if units == 1:
            # Some models do something else for a single row: let an idle one keep it company.
            pair, rows = of_units(batch, 2, 1), next(leaves(batch)).shape[0]
            both = self._accumulate(loss_fn, pair, units=2, counted=rows, is_careful=is_careful)
            return both.first(1, rows)
        return self._accumulate(loss_fn, batch, units=units, counted=None, is_careful=is_careful)

    def _accumulate(
        self,
        loss_fn: LossFunction,
        batch: Any,
        *,
        units: int,
        counted: int | None,
        is_careful: bool,
    ) -> Clipped:
        recorder, losses = self.record(loss_fn, batch, units=units, counted=counted)
        try:
            with torch.no_grad(), torch.autocast(self.flat.buffer.device.type, enabled=False):
                clipped = self._add(recorder, losses.detach(), is_careful=is_careful)
        finally:
            del losses
            recorder.forget()
        recorder.check_nothing_stays()
        return clipped

    def is_tried(self, loss_fn: LossFunction) -> bool:
        """Say whether a loss function was tried out."""
        return not self._is_checked or identity_of(loss_fn) in self._checked

    def try_again(self) -> None:
        """Let loss functions be tried out anew: what they hold may have changed."""
        self._checked.clear()

    def forget_refusal(self) -> None:
        """Begin a step of which nothing was refused yet."""
        self.refusal = None

    def try_out(self, loss_fn: LossFunction, batch: Any, *, units: int) -> None:
        """Refuse a model or a loss that can not be handled, on made-up rows like these."""
        if self.is_tried(loss_fn):
            return
        with _as_written():
            if check_gradients(self, loss_fn, batch, units=units):
                self._checked.add(identity_of(loss_fn))

    def record(
        self,
        loss_fn: LossFunction,
        batch: Any,
        *,
        units: int,
        counted: int | None = None,
        before_backward: Callable[[Recorder, Tensor], None] | None = None,
    ) -> tuple[Recorder, Tensor]:
        """Run forward and backward, and return what every use of a parameter contributes.

        The forward pass must be one that was approved: where its calls differ, it is given up and
        a trace decides anew. Of the losses only the first ``counted`` count, where that is given.
        """
        known = self._approved.setdefault(self._key(loss_fn, batch, units), [])
        fruitless = 0
        while fruitless < _TRIES:
            chance = Chance.now()
            try:
                return self._record(loss_fn, batch, units, counted, before_backward)
            except Diverged:
                chance.restore()  # so that the trace takes the branch that this pass took
                before = len(known)
                self._approve(loss_fn, batch, units)
                fruitless += len(known) == before
        raise ParameterError(
            "the model does not call the same operations each time, so what belongs to one example "
            "can not be told. Remove branches that depend on chance.",
            parameter="model",
        )

    def _record(
        self,
        loss_fn: LossFunction,
        batch: Any,
        units: int,
        counted: int | None,
        before_backward: Callable[[Recorder, Tensor], None] | None,
    ) -> tuple[Recorder, Tensor]:
        key = self._key(loss_fn, batch, units)
        batch = with_leaves(batch, iter([tensor.detach() for tensor in leaves(batch)]))
        recorder = Recorder(
            self.model,
            self.flat.parameters,
            self._approved.get(key) or self._approve(loss_fn, batch, units),
            batch=list(leaves(batch)),
            units=units,
            rules=RULES,
            expansions=EXPANSIONS,
            fallback=fallback,
        )
        for parameter in self.flat.parameters:
            parameter.grad = None
        device = self.flat.buffer.device.type
        with _as_written(), refusing_custom_functions(Rooted), recorder:
            with closed_doors():
                losses = loss_fn(self.model, batch)
            recorder.begin_backward()
            with torch._C.DisableTorchFunction():
                recorder.finish(losses)
                losses = checked_losses(losses, batch)
                if before_backward is not None:
                    before_backward(recorder, losses)
                total = losses[:counted].sum()
                one = torch.ones_like(total)
            with torch.autocast(device, enabled=False):
                backward(total, one)
        self._check_nothing_escaped()
        with torch.no_grad(), torch.autocast(device, enabled=False):
            recorder.lead_back()
        return recorder, losses

    def _add(self, recorder: Recorder, losses: Tensor, *, is_careful: bool) -> Clipped:
        parts: dict[int, Contribution] = {
            self._places[key]: joined(found)
            for key, found in recorder.contributions.items()
            if found
        }
        small = SmallGradients(parts, self._groups)
        norms, nulls = self._norms(parts, small, recorder.units)
        factors = self._clipping.factors(norms).to(self.flat.buffer.dtype)
        bad = ~torch.isfinite(norms).all(1)
        if is_careful and bool(bad.any()):
            # A factor of zero is not enough: zero times infinity is no number.
            parts = {place: part.without(bad) for place, part in parts.items()}
            small = SmallGradients(parts, self._groups)
        else:
            self.is_spoilt.logical_or_(bad.any())
        small.add_weighted(factors, self.flat)
        for place, part in parts.items():
            if place not in small.places:
                part.add_weighted(factors[:, self._groups[place]], self.flat.view(place))
        return Clipped(norms=norms, factors=factors, losses=losses, nulls=nulls)

    def _norms(
        self, parts: dict[int, Contribution], small: SmallGradients, units: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return upper bounds on the norms: (units, groups); and who has none, where it matters."""
        found = NormBounds(max(self._groups) + 1)
        for group, norms in small.norms():
            found.add(group, norms)
        for place, part in parts.items():
            if place not in small.places:
                found.add(self._groups[place], part.norms())
        zeros, clipping = self.flat.buffer.new_zeros(units), self._clipping
        if isinstance(clipping, AdaptiveState):
            return found.bounds(zeros, sensitivity=clipping.limit(zeros)), found.nulls(zeros)
        return found.bounds(zeros, sensitivity=clipping.sensitivity), None

    def _key(self, loss_fn: LossFunction, batch: Any, units: int) -> Any:
        return (
            identity_of(loss_fn),
            self.model.training,
            tuple((t.shape[1:], t.dtype, t.shape[0] // units) for t in leaves(batch)),
        )

    def _approve(self, loss_fn: LossFunction, batch: Any, units: int) -> list[CallLog]:
        """Trace a forward pass, and refuse one that mixes units; what the rows hold is not seen."""
        found = self._approved.setdefault(self._key(loss_fn, batch, units), [])
        try:
            with _as_written():
                log = traced(self.model, loss_fn, batch, units=units, expansions=EXPANSIONS)
        except ParameterError as error:
            self.refusal = str(error)  # decided without data: it may be told
            raise
        if not any(log.is_like(other) for other in found):
            found.append(log)
        return found

    def _check_nothing_escaped(self) -> None:
        escaped = [
            name
            for name, p in zip(self.flat.names, self.flat.parameters, strict=True)
            if p.grad is not None
        ]
        if escaped:
            for parameter in self.flat.parameters:
                parameter.grad = None
            raise ParameterError(
                f"{', '.join(escaped)}: used by an operation that can not be followed (a custom "
                "autograd.Function, or a compiled one). Nothing was released. Write the operation "
                "with torch functions, or freeze these parameters.",
                parameter="model",
            )


@contextmanager
def _as_written() -> Iterator[None]:
    """Run a model operation by operation: compiled, scripted or fused, it hides them."""
    fused = torch.backends.mha.get_fastpath_enabled()
    script: Any = torch._C.ScriptFunction
    scripted = script.__call__
    torch.backends.mha.set_fastpath_enabled(False)
    script.__call__ = lambda self, *args, **kwargs: getattr(
        self, "_torchdynamo_inline", functools.partial(scripted, self)
    )(*args, **kwargs)
    try:
        with unread_masks():
            if "torch._dynamo" not in sys.modules:  # nothing is compiled, and it loads slowly
                yield
            else:
                with torch.compiler.set_stance("force_eager"):
                    yield
    finally:
        script.__call__ = scripted
        torch.backends.mha.set_fastpath_enabled(fused)
