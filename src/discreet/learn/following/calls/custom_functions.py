"""Notice functions with a backward pass of their own, which no rule knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
import torch.utils.checkpoint

from discreet.learn.following.axis.refusals import refusal

# With what checkpoints that are not reentrant keep their inputs in some versions of torch: no
# gradient goes through it.
_OF_CHECKPOINTS: Final = getattr(torch.utils.checkpoint, "_NoopSaveInputs", None)


@contextmanager
def refusing_custom_functions(*allowed: type) -> Iterator[None]:
    """Refuse every ``torch.autograd.Function`` that is applied, but for our own."""
    kind: Any = torch.autograd.Function
    before = kind.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls in allowed or cls is _OF_CHECKPOINTS:
            return before.__func__(cls, *args, **kwargs)
        if cls.__name__ == "CheckpointFunction":
            raise refusal("a checkpoint", "is reentrant", advice="It needs use_reentrant=False.")
        raise refusal(
            f"the custom autograd.Function {cls.__name__}",
            "has a backward pass that can not be followed",
            advice="Write it with torch functions.",
        )

    kind.apply = classmethod(apply)
    try:
        yield
    finally:
        kind.apply = before
