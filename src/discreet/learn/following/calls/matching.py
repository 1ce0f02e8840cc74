"""Compare a forward pass with approved ones, call by call, while it runs."""

import weakref
from dataclasses import replace
from typing import Any, Final, final

from torch import Tensor, nn

from discreet.learn.following.axis.refusals import refusal
from discreet.learn.following.batch_tree import tensors
from discreet.learn.following.calls.call_log import (
    ORIGIN,
    CallLog,
    TorchCall,
    alias_code,
    outside_code,
)


class Diverged(Exception):
    """A call that no approved pass makes at this place: the pass has to be traced."""


@final
class Matching:
    """One forward pass as it is being compared."""

    __slots__ = (
        "_batch", "_calls", "_log", "_logs", "_model", "_next", "_outside", "_units", "made"
    )  # fmt: skip

    def __init__(
        self, model: nn.Module, logs: list[CallLog], batch: list[Tensor], units: int
    ) -> None:
        self._model, self._logs, self._batch, self._units = model, logs, batch, units
        self._next = 0
        self.made = [weakref.ref(tensor) for tensor in batch]  # what must not outlive the pass
        self._take(logs[-1])

    def _take(self, log: CallLog) -> None:
        self._log, self._calls = log, log.calls
        log.units.count = self._units
        fixed = log.outside[len(self._batch) :]
        if [t.shape for t in fixed if t is not None] != log.shapes:
            raise Diverged
        self._outside = {
            id(t): (place, t._version)
            for place, t in enumerate([*self._batch, *log.outside[len(self._batch) :]])
            if t is not None
        }

    def origin(self, tensor: Tensor) -> int:
        """Return where a tensor came from."""
        known = self._outside.get(id(tensor))
        if known is not None:
            return outside_code(known[0], is_changed=tensor._version != known[1])
        found = getattr(tensor, ORIGIN, None)
        if found is None:
            alias = alias_code(self._model, tensor)
            return _UNKNOWN if alias is None else alias
        if found[0] is self:
            code: int = found[1] + (tensor._version != found[2])
            return code
        if found[3]:
            raise refusal("a tensor", "was kept from the examples of an earlier step")
        return _UNKNOWN

    def call(self, func: Any, operands: list[Tensor], given: tuple[Any, ...]) -> TorchCall:
        """Return the approved call that this one is, the next in order."""
        place = self._next
        self._next = place + 1
        origins = tuple([self.origin(tensor) for tensor in operands])
        if place < len(self._calls):
            call = self._calls[place]
            if call.origins == origins and call.given == given and call.func == func:
                return call
            mirrored = (_MIRRORED.get(func), origins[::-1], given)
            if mirrored == (call.func, call.origins, call.given):
                # Python hands a comparison to a tensor of a trace first, on whichever side it is.
                return replace(call, operands=call.operands[::-1])
        return self._elsewhere(place, func, operands, given)

    def _elsewhere(
        self, place: int, func: Any, operands: list[Tensor], given: tuple[Any, ...]
    ) -> TorchCall:
        """Go over to another approved pass that is the same up to here."""
        before, versions = self._log, self._outside
        for log in reversed(self._logs):
            if (
                log is before
                or len(log.calls) <= place
                or log.calls[:place] != before.calls[:place]
            ):
                continue
            self._take(log)
            self._outside = {
                key: (place, versions.get(key, (0, version))[1])
                for key, (place, version) in self._outside.items()
            }
            call = log.calls[place]
            origins = tuple(self.origin(tensor) for tensor in operands)
            if call.origins == origins and call.given == given and call.func == func:
                return call
        raise Diverged

    def again(self, func: Any, operands: list[Tensor], given: tuple[Any, ...]) -> TorchCall | None:
        """Return the approved call that one of the backward pass repeats, as checkpoints do."""
        origins = tuple([self.origin(tensor) for tensor in operands])
        calls = self._calls
        count = len(calls)
        for step in range(count):
            place = (self._next + step) % count
            call = calls[place]
            if call.origins == origins and call.given == given and call.func == func:
                self._next = place + 1
                return call
        return None

    def mark(self, call: TorchCall, result: Any) -> None:
        """Write on what a call returns where it came from."""
        if isinstance(result, Tensor):
            if len(call.results) != 1 or call.shapes[0] != tuple(result.shape):
                raise Diverged
            is_of_rows = call.results[0] is not None
            setattr(result, ORIGIN, (self, call.code, result._version, is_of_rows))
            if is_of_rows:
                self.made.append(weakref.ref(result))
            return
        if not call.results:
            return
        found = list(tensors(result))
        if len(found) != len(call.results):
            raise Diverged
        for number, (tensor, axis) in enumerate(zip(found, call.results, strict=True)):
            if call.shapes[number] != tuple(tensor.shape):
                raise Diverged
            origin = (self, call.code + 2 * number, tensor._version, axis is not None)
            setattr(tensor, ORIGIN, origin)
            if axis is not None:
                self.made.append(weakref.ref(tensor))

    def forget(self) -> None:
        """Let go of the batch."""
        self._batch = []

    def finish(self, losses: Any) -> None:
        """Compare the end: the losses must be what an approved pass returned."""
        if not isinstance(losses, Tensor) or self.origin(losses) != self._log.losses:
            raise Diverged


_MIRRORED: Final[dict[Any, Any]] = {
    Tensor.lt: Tensor.gt,
    Tensor.gt: Tensor.lt,
    Tensor.le: Tensor.ge,
    Tensor.ge: Tensor.le,
    Tensor.eq: Tensor.eq,
    Tensor.ne: Tensor.ne,
    Tensor.__lt__: Tensor.__gt__,
    Tensor.__gt__: Tensor.__lt__,
    Tensor.__le__: Tensor.__ge__,
    Tensor.__ge__: Tensor.__le__,
    Tensor.__eq__: Tensor.__eq__,
    Tensor.__ne__: Tensor.__ne__,
}
_UNKNOWN: Final = 1 << 60  # a code that no approved call has
