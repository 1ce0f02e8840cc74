"""Which rule follows which operation.

A rule computes the operation with the parameter as a constant, and watches the result: its
gradient, together with the input, gives the gradient of each unit. It is called with the recorder,
the torch function and that function's own arguments. Operations without a rule of their own go to
the fallback, which differentiates that one operation unit by unit.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from discreet.learn.rules.attention import attention
from discreet.learn.rules.convolution import convolution
from discreet.learn.rules.elementwise import add, expand, multiply, setitem
from discreet.learn.rules.embeddings import embedding, embedding_bag
from discreet.learn.rules.linear import addmm, linear, matmul
from discreet.learn.rules.normalisation import (
    group_norm,
    instance_norm,
    layer_norm,
    refuse_batch_norm,
    rms_norm,
)

T = torch.Tensor
RULES: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    F.linear: linear,
    torch.matmul: matmul,
    T.matmul: matmul,
    T.__matmul__: matmul,
    T.mm: matmul,
    torch.mm: matmul,
    torch.addmm: addmm,
    F.embedding: embedding,
    F.embedding_bag: embedding_bag,
    **dict.fromkeys((torch.conv1d, torch.conv2d, torch.conv3d), convolution),
    **dict.fromkeys(
        (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d), convolution
    ),
    F.scaled_dot_product_attention: attention,
    T.__setitem__: setitem,
    F.layer_norm: layer_norm,
    F.group_norm: group_norm,
    F.rms_norm: rms_norm,
    F.instance_norm: instance_norm,
    F.batch_norm: refuse_batch_norm,
    **dict.fromkeys((torch.add, T.add, T.__add__, T.__radd__, T.add_, T.__iadd__), add),
    **dict.fromkeys((torch.mul, T.mul, T.__mul__, T.__rmul__, T.mul_, T.__imul__), multiply),
    **dict.fromkeys((T.expand, T.expand_as, T.repeat, torch.broadcast_to, T.broadcast_to), expand),
}
