"""Let transformers decide by shapes whether an attention mask is needed, not by its numbers.

Its models look whether anybody's row is padded, and leave the mask out if nobody's is: a decision
by all rows. Where a graph is traced they do without, and the result is the same.
"""

import functools
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from torch import Tensor


def _is_of_rows(tensor: Any = None) -> bool:
    return tensor is None or tensor.shape[0] != 1


# Where transformers asks whether a graph is traced before it looks at the numbers of rows.
_LOOKING: Final = ("masking_utils", "modeling_utils", "modeling_attn_mask_utils")


@contextmanager
def unread_masks() -> Iterator[None]:
    """Have masks of rows not read; where transformers is not in use, do nothing."""
    masks: Any = sys.modules.get("transformers.masking_utils")
    names = ("is_tracing", "_preprocess_mask_arguments", "find_packed_sequence_indices")
    if masks is None or not all(hasattr(masks, name) for name in names):
        yield
        return
    prepare = masks._preprocess_mask_arguments

    @functools.wraps(prepare)  # so that the arguments' names are known to another one around it
    def prepared(*args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(prepare).bind(*args, **kwargs).arguments
        places = given.get("position_ids")
        is_shared = isinstance(places, Tensor) and not _is_of_rows(places)
        if is_shared and masks.find_packed_sequence_indices(places) is None:
            given["position_ids"] = None  # everybody's places, and in one piece
        return prepare(**given)

    looking: list[Any] = [sys.modules.get(f"transformers.{name}") for name in _LOOKING]
    before = [(module, module.is_tracing) for module in looking if hasattr(module, "is_tracing")]
    masks._preprocess_mask_arguments = prepared
    for module, _ in before:
        module.is_tracing = _is_of_rows
    try:
        yield
    finally:
        masks._preprocess_mask_arguments = prepare
        for module, is_tracing in before:
            module.is_tracing = is_tracing
