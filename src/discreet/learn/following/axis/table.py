"""Which rule follows which operation of ATen: what has none is refused.

A name without an overload speaks for all overloads that are not named themselves. Operations in
place (``add_``) have the rule of the others, and must leave the axis of what they overwrite as it
is. ``SIZES`` names the arguments that may be sizes counted in units: elsewhere such a number would
be a value.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from discreet.learn.following.axis import (
    factories,
    indexing,
    networks,
    products,
    reductions,
    views,
)
from discreet.learn.following.axis.operation import Operation

Rule = Callable[[Operation], Any]

# Number by number, with broadcasting; an argument that is no tensor is the same for everybody.
_POINTWISE: Final = """
abs absolute acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor __and__ __or__ __xor__
__lshift__ __rshift__ ceil celu clamp clamp_max clamp_min complex conj conj_physical copysign cos
cosh deg2rad digamma div divide elu eq erf erfc erfinv exp exp2 expm1 float_power floor
floor_divide fmax fmin fmod frac frexp ge gelu gt hardshrink hardsigmoid hardswish hardtanh
heaviside hypot i0 igamma igammac isfinite isinf isnan isneginf isposinf ldexp le leaky_relu lerp
lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
logit log_sigmoid_forward lt masked_fill maximum minimum max.other min.other mish mul multiply
mvlgamma nan_to_num ne neg negative nextafter polar polygamma positive pow rad2deg reciprocal relu
relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus
softshrink special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr
special_ndtri special_xlog1py special_zeta sqrt square sub subtract tan tanh threshold true_divide
trunc where.self where.ScalarSelf where.ScalarOther where.Scalar xlogy copy
"""

_CONSTANTS: Final = "zeros ones full empty new_zeros new_ones new_full new_empty"

_BY_RULE: Final[dict[Rule, str]] = {
    views.same: "alias detach lift_fresh lift_fresh_copy clone contiguous",
    views.copied: "_to_copy",
    views.read_as: "view_as_real view.dtype _conj resolve_conj resolve_neg _neg_view real imag",
    views.reshape: "view _unsafe_view reshape _reshape_alias",
    views.permute: "permute",
    views.transpose: "transpose t",
    views.unsqueeze: "unsqueeze",
    views.squeeze: "squeeze",
    views.expand: "expand",
    views.repeat: "repeat",
    views.select: "select",
    views.slice_: "slice",
    views.split: "split split_with_sizes unsafe_split unsafe_split_with_sizes split_copy",
    views.unbind: "unbind",
    views.concatenate: "cat concatenate",
    views.stack: "stack",
    views.flip: "flip",
    views.pad: "constant_pad_nd",
    views.diagonal: "diagonal",
    views.diag_embed: "diag_embed",
    views.unfold: "unfold",
    views.as_complex: "view_as_complex",
    views.restrided: "as_strided_",
    reductions.reduce: "sum.dim_IntList mean.dim amax amin aminmax max.dim min.dim prod.dim_int "
    "var.correction std.correction var_mean.correction std_mean.correction var.dim std.dim "
    "logsumexp norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype linalg_vector_norm any.dim any.dims "
    "all.dim all.dims argmax argmin median.dim nanmedian.dim mode kthvalue nansum "
    "count_nonzero.dim_IntList count_nonzero sum mean any all max min prod var std median",
    reductions.along: "_softmax _safe_softmax _log_softmax cumsum cumprod logcumsumexp sort "
    "topk cummax cummin linalg_cross argsort sort.stable argsort.stable",
    reductions.roll: "roll",
    products.matrix_product: "mm mv dot vdot",
    products.batched_product: "bmm",
    products.added_product: "addmm addmv",
    products.added_batched_product: "baddbmm",
    products.convolution: "convolution _convolution convolution_overrideable",
    products.matrices: "tril triu linalg_inv_ex linalg_cholesky_ex linalg_matrix_exp _linalg_det "
    "_linalg_slogdet _linalg_svd _linalg_eigh linalg_qr linalg_eig linalg_lu_factor_ex",
    products.distances: "_cdist_forward _euclidean_dist",
    indexing.gather: "gather scatter scatter_add scatter_reduce",
    indexing.index_select: "index_select",
    indexing.index_write: "index_add index_copy index_fill",
    indexing.embedding: "embedding",
    indexing.renorm: "embedding_renorm",
    indexing.index: "index _unsafe_index",
    indexing.index_put: "index_put _index_put_impl _unsafe_index_put",
    indexing.search: "bucketize searchsorted",
    networks.layer_norm: "native_layer_norm _fused_rms_norm",
    networks.group_norm: "native_group_norm",
    networks.batch_norm: "native_batch_norm _native_batch_norm_legit "
    "_native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training cudnn_batch_norm "
    "miopen_batch_norm",
    networks.spatial(1): "reflection_pad1d replication_pad1d upsample_linear1d upsample_nearest1d "
    "_upsample_nearest_exact1d adaptive_max_pool1d",
    networks.spatial(2): "avg_pool2d max_pool2d_with_indices adaptive_max_pool2d "
    "_adaptive_avg_pool2d adaptive_avg_pool2d reflection_pad2d replication_pad2d "
    "upsample_bilinear2d upsample_nearest2d upsample_bicubic2d _upsample_nearest_exact2d "
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa fractional_max_pool2d max_unpool2d",
    networks.spatial(3): "avg_pool3d max_pool3d_with_indices adaptive_max_pool3d "
    "_adaptive_avg_pool3d reflection_pad3d replication_pad3d upsample_trilinear3d "
    "upsample_nearest3d _upsample_nearest_exact3d pixel_shuffle pixel_unshuffle",
    networks.first_dim: "channel_shuffle native_channel_shuffle grid_sampler_2d grid_sampler_3d "
    "_grid_sampler_2d_cpu_fallback",
    networks.folded: "im2col col2im",
    networks.affine_grid: "affine_grid_generator",
    networks.loss: "mse_loss smooth_l1_loss huber_loss binary_cross_entropy soft_margin_loss "
    "binary_cross_entropy_with_logits l1_loss",
    networks.loss_of_rows: "nll_loss_forward nll_loss2d_forward multi_margin_loss "
    "multilabel_margin_loss_forward",
    networks.glu: "glu",
    networks.multinomial: "multinomial",
    networks.fourier: "_fft_r2c _fft_c2c _fft_c2r",
    networks.parametric_relu: "_prelu_kernel",
    factories.constant: _CONSTANTS,
    factories.chance: "rand randn randint.low randint normal.float_float",
    factories.constant_like: "zeros_like ones_like full_like empty_like fill zero",
    factories.chance_like: "rand_like randn_like randint_like bernoulli normal native_dropout "
    "poisson binomial _standard_gamma rrelu_with_noise rrelu_with_noise_functional "
    "normal.Tensor_float normal.float_Tensor normal.Tensor_Tensor bernoulli.p",
    factories.chance_in_place: "normal_ uniform_ exponential_ cauchy_ geometric_ log_normal_ "
    "random_ bernoulli_.float",
    factories.numbering: "arange",
    networks.nothing_read: "_local_scalar_dense item equal is_nonzero",
    networks.data_shaped: "nonzero masked_select unique_consecutive _unique2 unique_dim bincount "
    "repeat_interleave.Tensor masked_scatter nonzero_numpy",
}

_SIZED: Final = {
    "size": "view _unsafe_view reshape _reshape_alias expand rand randn randint "
    + _CONSTANTS
    + " affine_grid_generator as_strided_",
    "shape": "reshape",
    "stride": "_reshape_alias as_strided_",
    "repeats": "repeat",
    "start": "slice",
    "end": "slice arange",
    "split_size": "split unsafe_split",
    "split_sizes": "split_with_sizes unsafe_split_with_sizes",
    "N": "native_group_norm",
    "indices": "index index_put",
}


def _spread(by_rule: Iterable[tuple[Rule, str]]) -> dict[str, Rule]:
    return {name: rule for rule, names in by_rule for name in names.split()}


def pointwise(op: Operation) -> Any:
    """Follow what is done number by number."""
    return op.aligned()


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(_POINTWISE.split(), pointwise),
    **_spread(_BY_RULE.items()),
}
SIZES: Final[frozenset[tuple[str, str]]] = frozenset(
    (name, argument) for argument, names in _SIZED.items() for name in names.split()
)


def rule_of(op: Operation) -> Rule | None:
    """Return the rule of an operation, if it has one."""
    if not op.func._schema.name.startswith("aten::"):
        return None
    overload = op.func._schema.overload_name
    plain = op.name.removesuffix("_") if op.is_in_place else op.name
    for name in (f"{op.name}.{overload}", op.name, f"{plain}.{overload}", plain):
        if name in RULES:
            return RULES[name]
    return None
