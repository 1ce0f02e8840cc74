# ruff: noqa: A002 - arguments have the names that torch gave them
"""What each operation on a parameter leaves behind for the gradients of the units.

A rule computes the operation with the parameter as a constant, and watches the result: its
gradient, together with the input, gives the gradient of each unit. Operations without a rule of
their own go to the fallback, which differentiates that one operation unit by unit.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn import _kernels
from discreet.learn._convolutions import Convolution, Geometry
from discreet.learn._dots import dots
from discreet.learn._layouts import Axis, tensors
from discreet.learn._recording import Kept, Recorder
from discreet.learn._uses import Dense, Lookup, Outer, wide


def _cast(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return what autocast would compute with, so that the same numbers are kept."""
    device = x.device.type
    if not torch.is_autocast_enabled(device) or not x.is_floating_point():
        return x
    return x.to(dtype or torch.get_autocast_dtype(device))


def _positions(rec: Recorder, tensor: Tensor, axis: Axis) -> Tensor:
    """Return (units, positions, features)."""
    return rec.by_unit(tensor, axis).reshape(rec.units, -1, tensor.shape[-1])


def _wanted(rec: Recorder, *tensors: Tensor | None) -> list[Tensor]:
    return [t for t in tensors if t is not None and rec.is_followed(t)]


def _plain(rec: Recorder, tensor: Any) -> Any:
    return rec.plain(tensor) if rec.is_followed(tensor) else tensor


def _per_unit_sum(rec: Recorder, grad: Tensor, axis: Axis, shape: torch.Size) -> Tensor:
    """Sum each unit's part over what was broadcast, to the shape of the parameter."""
    grad = rec.by_unit(grad, axis)
    if axis.each != 1:  # (units, each, *rest): back to where the axis was
        grad = grad.movedim(1, axis.dim + 1)
    elif axis.dim:
        grad = grad.unsqueeze(1).movedim(1, axis.dim + 1)
    else:
        grad = grad.unsqueeze(1)
    # Now (units, *out_shape with the axis as long as one unit's rows).
    extra = grad.dim() - 1 - len(shape)
    over = list(range(1, 1 + extra))
    over += [
        1 + extra + d
        for d, size in enumerate(shape)
        if size == 1 and grad.shape[1 + extra + d] != 1
    ]
    grad = wide(grad)
    if over:
        grad = grad.sum(over, keepdim=True)
    return grad.reshape(rec.units, *shape)


def linear(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Follow ``x @ weight.T + bias``."""
    x, axis = _cast(input), rec.axis(input)
    if axis is not None and axis.dim == input.dim() - 1:
        raise _mixing("linear")
    out = func(x, _plain(rec, weight), _plain(rec, bias))
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grads = _positions(rec, grad, axis)
        if rec.is_followed(weight):
            rec.put(weight, Outer(grads, _positions(rec, kept.get(), axis)))
        if bias is not None and rec.is_followed(bias):
            rec.put(bias, Dense(_summed(grads)))

    return rec.watch(out, *_wanted(rec, weight, bias), then=then)


def _summed(grads: Tensor) -> Tensor:
    """Sum (units, positions, features) over positions."""
    if grads.shape[1] == 1:
        return wide(grads.squeeze(1))
    return grads.sum(1, dtype=wide(grads[:0]).dtype)


def matmul(rec: Recorder, func: Any, input: Tensor, other: Tensor) -> Tensor:
    """Follow ``x @ weight``; anything else goes to the fallback."""
    axis = rec.axis(input)
    if rec.is_followed(input) or other.dim() != 2 or input.dim() < 2:
        return cast("Tensor", fallback(rec, func, input, other))
    if axis is not None and axis.dim == input.dim() - 1:
        raise _mixing("matmul")
    x = _cast(input)
    out = func(x, rec.plain(other))
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(other, Outer(_positions(rec, kept.get(), axis), _positions(rec, grad, axis)))

    return rec.watch(out, other, then=then)


def addmm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    **scales: Any,
) -> Tensor:
    """Follow ``bias + x @ weight``."""
    axis = rec.axis(mat1)
    if scales or rec.is_followed(mat1) or input.dim() != 1 or (axis is not None and axis.dim):
        return cast("Tensor", fallback(rec, func, input, mat1, mat2, **scales))
    x = _cast(mat1)
    out = func(_plain(rec, input), x, _plain(rec, mat2))
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grads = _positions(rec, grad, axis)
        if rec.is_followed(mat2):
            rec.put(mat2, Outer(_positions(rec, kept.get(), axis), grads))
        if rec.is_followed(input):
            rec.put(input, Dense(_summed(grads)))

    return rec.watch(out, *_wanted(rec, input, mat2), then=then)


def embedding(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Follow the reading of rows of a table."""
    if max_norm is not None or scale_grad_by_freq:
        raise ParameterError(
            "an embedding with max_norm or scale_grad_by_freq mixes the examples of a batch. "
            "Make it without these options.",
            parameter="model",
        )
    axis = rec.axis(input)
    out = func(input, rec.plain(weight), padding_idx)
    kept = Kept(input)

    def then(grad: Tensor) -> None:
        assert axis is not None
        index = rec.by_unit(kept.get(), axis).reshape(rec.units, -1)
        rows = _positions(rec, grad, axis)
        if padding_idx is not None:
            rows = rows.masked_fill((index == padding_idx % weight.shape[0])[..., None], 0)
        rec.put(weight, Lookup(index, rows, weight.shape[0]))

    return rec.watch(out, weight, then=then)


def embedding_bag(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Follow sums or means of rows of a table, one bag for each row of ``input``."""
    if offsets is not None or mode == "max" or max_norm is not None or scale_grad_by_freq:
        raise ParameterError(
            "of nn.EmbeddingBag only bags of one length are handled: a two-dimensional input, "
            "mode 'sum' or 'mean', no max_norm and no scale_grad_by_freq.",
            parameter="model",
        )
    axis = rec.axis(input)
    out = func(
        input,
        rec.plain(weight),
        mode=mode,
        per_sample_weights=per_sample_weights,
        padding_idx=padding_idx,
    )

    def then(grad: Tensor) -> None:
        assert axis is not None
        weights = torch.ones_like(input, dtype=grad.dtype)
        if per_sample_weights is not None:
            weights = per_sample_weights.detach()
        if padding_idx is not None:
            weights = weights.masked_fill(input == padding_idx % weight.shape[0], 0)
        if mode == "mean":
            weights = weights / weights.sum(1, keepdim=True).clamp_min(1)
        rows = grad[:, None, :] * weights[:, :, None]
        index = rec.by_unit(input, axis).reshape(rec.units, -1)
        rows = rec.rows_by_unit(rows, axis)
        rec.put(weight, Lookup(index, rows.reshape(rec.units, index.shape[1], -1), weight.shape[0]))

    return rec.watch(out, weight, then=then)


def convolution(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Follow a convolution, or a transposed one, in one to three dimensions."""
    is_transposed = "transpose" in func.__name__
    names = ["input", "weight", "bias", "stride", "padding"]
    names += ["output_padding", "groups", "dilation"] if is_transposed else ["dilation", "groups"]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    axis, space = rec.axis(x), weight.dim() - 2
    if (axis is not None and axis.dim != 0) or x.dim() != space + 2:
        raise ParameterError(
            f"{func.__name__} wants the examples along the first axis of its input.",
            parameter="model",
        )
    x = _cast(x)
    padding = given.get("padding", 0)
    if isinstance(padding, str):
        x, padding = _padded(x, padding, weight, _tuple(given.get("dilation", 1), space))
    geometry = Geometry(
        stride=_tuple(given.get("stride", 1), space),
        padding=_tuple(padding, space),
        dilation=_tuple(given.get("dilation", 1), space),
        output_padding=_tuple(given.get("output_padding", 0), space),
        groups=given.get("groups", 1),
        is_transposed=is_transposed,
    )
    settings: dict[str, Any] = {
        "stride": geometry.stride,
        "padding": geometry.padding,
        "dilation": geometry.dilation,
        "groups": geometry.groups,
    }
    if is_transposed:
        settings["output_padding"] = geometry.output_padding
    out = func(x, _plain(rec, weight), _plain(rec, bias), **settings)
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grad = rec.rows_by_unit(grad, axis)
        if rec.is_followed(weight):
            rows = rec.rows_by_unit(kept.get(), axis)
            rec.put(weight, Convolution(rows, grad, weight.shape, geometry, rec.units))
        if bias is not None and rec.is_followed(bias):
            sums = grad.flatten(2).sum(2, dtype=wide(grad[:0]).dtype)
            rec.put(bias, Dense(sums.view(rec.units, -1, sums.shape[1]).sum(1)))

    return rec.watch(out, *_wanted(rec, weight, bias), then=then)


def _tuple(value: Any, length: int) -> tuple[int, ...]:
    found = (value,) * length if isinstance(value, int) else tuple(value)
    return found * length if len(found) == 1 else found


def _padded(
    x: Tensor, padding: str, weight: Tensor, dilation: tuple[int, ...]
) -> tuple[Tensor, int]:
    if padding == "same":
        pads: list[int] = []
        for size, spread in zip(reversed(weight.shape[2:]), reversed(dilation), strict=True):
            total = spread * (size - 1)
            pads += [total // 2, total - total // 2]
        x = F.pad(x, pads)
    return x, 0


def layer_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Follow the scale and the shift of a layer norm."""
    axis = rec.axis(input)
    dims = len(normalized_shape)
    x = _cast(input, torch.float32)
    if axis is not None and axis.dim >= x.dim() - dims:
        raise _mixing("layer_norm")
    out, mean, rstd = torch.native_layer_norm(
        x, normalized_shape, _plain(rec, weight), _plain(rec, bias), eps
    )
    kept, mean, rstd = Kept(x), mean.detach(), rstd.detach()

    def then(grad: Tensor) -> None:
        assert axis is not None
        scale, shift = _kernels.norm_affine_grads(
            _positions(rec, grad.flatten(-dims), axis),
            _positions(rec, kept.get().flatten(-dims), axis),
            rec.by_unit(mean.flatten(-dims), axis).reshape(rec.units, -1),
            rec.by_unit(rstd.flatten(-dims), axis).reshape(rec.units, -1),
        )
        for owner, grads in ((weight, scale), (bias, shift)):
            if owner is not None and rec.is_followed(owner):
                rec.put(owner, Dense(grads.view(rec.units, *owner.shape)))

    return rec.watch(out, *_wanted(rec, weight, bias), then=then)


def group_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Follow the scale and the shift of a group norm."""
    axis = rec.axis(input)
    if axis is not None and axis.dim != 0:
        raise _mixing("group_norm")
    x = _cast(input, torch.float32)
    rows, channels = x.shape[:2]
    out, mean, rstd = torch.native_group_norm(
        x,
        _plain(rec, weight),
        _plain(rec, bias),
        rows,
        channels,
        x[:1, :1].numel(),
        num_groups,
        eps,
    )
    kept, mean, rstd = Kept(x), mean.detach(), rstd.detach()

    def then(grad: Tensor) -> None:
        assert axis is not None
        products, sums = dots(grad.flatten(2), kept.get().flatten(2))
        each = channels // num_groups
        scale = (products - mean.repeat_interleave(each, 1) * sums) * rstd.repeat_interleave(
            each, 1
        )
        for owner, grads in ((weight, scale), (bias, sums)):
            if owner is not None and rec.is_followed(owner):
                grads = rec.rows_by_unit(grads, axis)
                rec.put(owner, Dense(grads.view(rec.units, -1, channels).sum(1)))

    return rec.watch(out, *_wanted(rec, weight, bias), then=then)


def add(rec: Recorder, func: Any, input: Any, other: Any, **options: Any) -> Tensor:
    """Follow a parameter that is added to a batch."""
    if options or not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other, **options))
    owner = input if rec.is_followed(input) else other
    out = func(_plain(rec, input), _plain(rec, other))
    (axis,) = rec.results or (None,)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(_per_unit_sum(rec, grad, axis, owner.shape)))

    return rec.watch(out, owner, then=then)


def multiply(rec: Recorder, func: Any, input: Any, other: Any) -> Tensor:
    """Follow a parameter that a batch is multiplied with."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other))
    owner, x = (input, other) if rec.is_followed(input) else (other, input)
    out = func(_plain(rec, input), _plain(rec, other))
    (axis,) = rec.results or (None,)
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(_per_unit_sum(rec, wide(grad) * kept.get(), axis, owner.shape)))

    return rec.watch(out, owner, then=then)


def expand(rec: Recorder, func: Any, input: Tensor, *sizes: Any, **named: Any) -> Tensor:
    """Follow a parameter that is repeated for every unit."""
    out = func(rec.plain(input), *sizes, **named).clone()
    (axis,) = rec.results or (None,)
    if axis is not None:
        own = axis.dim - (out.dim() - input.dim())
        grown = [
            d
            for d in range(input.dim())
            if out.shape[out.dim() - input.dim() + d] != input.shape[d]
        ]
        if (own >= 0 and input.shape[own] != 1) or any(input.shape[d] != 1 for d in grown):
            raise ParameterError(
                f"{func.__name__} of a parameter along an axis that is longer than 1 is not "
                "handled. Use expand on an axis of length 1.",
                parameter="model",
            )

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(input, Dense(_per_unit_sum(rec, grad, axis, input.shape)))

    return rec.watch(out, input, then=then)


def fallback(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Differentiate one operation unit by unit (vmap of its vector-Jacobian product)."""
    owners = [t for t in tensors(args, kwargs) if rec.is_followed(t)]
    owners = list({id(t): t for t in owners}.values())
    batched = [t for t in tensors(args, kwargs) if rec.axis(t) is not None]
    axes = [rec.axis(t) for t in batched]

    def call(found: dict[int, Tensor]) -> Any:
        return func(*_swapped(args, found), **{k: _swapped(v, found) for k, v in kwargs.items()})

    out = call({id(t): rec.plain(t) for t in owners})
    results = rec.results
    if not isinstance(out, Tensor) or not (batched or rec.is_again):
        raise ParameterError(
            f"{func.__name__} on a trainable parameter is not handled. Write it with operations "
            "that take the batch and the parameter and return one tensor.",
            parameter="model",
        )
    kept = [Kept(t) for t in batched]
    device = out.device.type
    as_before = torch.autocast(
        device,
        dtype=torch.get_autocast_dtype(device),
        enabled=torch.is_autocast_enabled(device),
    )
    plain = [rec.plain(t) for t in owners]

    def then(grad: Tensor) -> None:
        (axis,) = results
        if axis is None or any(one is None for one in axes):
            raise _mixing(func.__name__)

        def one(grad: Tensor, *inputs: Tensor) -> Any:
            found = {
                id(t): _one_unit(x, a)
                for t, x, a in zip(batched, inputs, axes, strict=True)
                if a is not None
            }

            def again(*parameters: Tensor) -> Any:
                return call(
                    {**found, **{id(t): p for t, p in zip(owners, parameters, strict=True)}}
                )

            pull = torch.func.vjp(again, *plain)[1]
            return pull(_one_unit(grad, axis))

        inputs = [rec.by_unit(x.get(), a) for x, a in zip(kept, axes, strict=True) if a is not None]
        with as_before:
            each = torch.func.vmap(one)(rec.by_unit(grad, axis), *inputs)
        for owner, grads in zip(owners, each, strict=True):
            rec.put(owner, Dense(wide(grads)))

    return rec.watch(out, *owners, then=then)


def _swapped(tree: Any, found: dict[int, Tensor]) -> Any:
    if isinstance(tree, Tensor):
        return found.get(id(tree), tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(_swapped(one, found) for one in tree)
    return tree


def _one_unit(tensor: Tensor, axis: Axis) -> Tensor:
    """Put one unit's rows back where the operation expects them."""
    if axis.each == 1:
        tensor = tensor.unsqueeze(0)
    return tensor.movedim(0, axis.dim)


def refuse_batch_norm(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Refuse statistics over a batch."""
    raise ParameterError(
        "batch norm computes statistics over the batch, so no example has a gradient of its own. "
        "Replace it: model = discreet.learn.fix(model).",
        parameter="model",
    )


def _mixing(name: str) -> ParameterError:
    return ParameterError(
        f"{name} sums over the examples of a batch, so no example has a gradient of its own. "
        "Compute each example's loss from that example alone.",
        parameter="model",
    )


def rms_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Follow the scale of a root-mean-square norm."""
    assert weight is not None
    hat = func(input, normalized_shape, None, eps)
    rec._axes[id(hat)] = rec.axis(input)
    return multiply(rec, torch.mul, hat, weight)


def instance_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Follow an instance norm: a group norm with one channel in a group."""
    if running_mean is not None or not use_input_stats:
        raise refuse_batch_norm(rec, func)  # type: ignore[misc]
    return group_norm(rec, F.group_norm, input, input.shape[1], weight, bias, eps)


T = torch.Tensor
RULES: dict[Any, Any] = {
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
    F.layer_norm: layer_norm,
    F.group_norm: group_norm,
    F.rms_norm: rms_norm,
    F.instance_norm: instance_norm,
    F.batch_norm: refuse_batch_norm,
    **dict.fromkeys((torch.add, T.add, T.__add__, T.__radd__, T.add_, T.__iadd__), add),
    **dict.fromkeys((torch.mul, T.mul, T.__mul__, T.__rmul__, T.mul_, T.__imul__), multiply),
    **dict.fromkeys((T.expand, T.expand_as, T.repeat, torch.broadcast_to, T.broadcast_to), expand),
}
