"""What a user's code may ask of a tensor that is no tensor itself."""

from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor


def _functions(names: str) -> frozenset[Any]:
    """Return torch functions by name, the getters of attributes among them."""
    found = []
    for name in names.split():
        for owner in (Tensor, torch):
            one = getattr(owner, name, None)
            if one is not None:
                is_attribute = not callable(one) or isinstance(one, property)
                found.append(one.__get__ if is_attribute else one)
    return frozenset(found)


# The same for every number of units and for all rows: not worth writing down.
QUESTIONS: Final = _functions(
    """dim ndim dtype device layout requires_grad is_leaf is_cuda is_cpu is_sparse is_quantized
    is_meta is_nested is_mkldnn is_mps is_xpu element_size itemsize is_floating_point is_complex
    is_signed is_contiguous is_inference names has_names get_device ndimension is_conj is_neg
    is_shared is_tensor is_pinned is_ipu is_vulkan is_xla is_mtia is_maia is_sparse_csr
    is_storage result_type can_cast promote_types retains_grad _version"""
) | {torch.ops.prim.device.default, torch.ops.prim.layout.default}
# May tell the number of units: a trace gives a symbol for an answer.
SIZES_ASKED: Final = _functions("shape size numel nelement stride nbytes storage_offset __len__")

# Some models ask for the gradient of their input, so that checkpoints have one to lead back.
_SETTER: Final[Any] = Tensor.requires_grad.__set__  # type: ignore[attr-defined]
LEAVES: Final = frozenset({_SETTER, Tensor.requires_grad_})


def not_done(func: Any, tensor: Tensor) -> Tensor | None:
    """Return what one of ``LEAVES`` returns; torch never lets go of what a setter returns."""
    return None if func == _SETTER else tensor


# May return what they were given, and do so by its layout or kind, or outside of training: what
# they return counts as what they were given, which has the same axis.
IDENTITIES: Final = frozenset(
    {Tensor.contiguous, Tensor.to, Tensor.type, Tensor.type_as, Tensor.float, Tensor.double,
     Tensor.half, Tensor.bfloat16, F.dropout, torch.dropout, F.dropout1d, F.dropout2d, F.dropout3d,
     F.alpha_dropout, F.feature_alpha_dropout}
)  # fmt: skip


def name_of(func: Any) -> str:
    """Return the name of a torch function, or of the attribute that it gets."""
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        name = str(getattr(getattr(func, "__self__", None), "__name__", name))
    return name
