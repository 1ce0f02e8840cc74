"""Find the parts of a model that cannot be trained privately, and replace those that can be fixed.

Clipping bounds what one example adds to a sum of gradients. That works only if an example's
gradient depends on this example alone, and only if nothing else in the model remembers the data:
batch normalisation breaks both.
"""

import copy
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy

from discreet.errors import ParameterError

__all__ = ["check", "fix", "fixes"]

_log = logging.getLogger("discreet.learn")

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_MOST_GROUPS = 32
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """One module that cannot be trained privately, why, and what it could become."""

    name: str
    kind: str
    reason: str
    remedy: str
    replace: Callable[[], nn.Module] | None = None
    becomes: str = ""

    def __str__(self) -> str:
        remedy = f"discreet.learn.fix(model) makes it {self.becomes}" if self.replace else ""
        way_out = "; ".join(filter(None, (remedy, self.remedy)))
        return f"{_called(self.name)} ({self.kind}) {self.reason}: {way_out}."


def check(model: nn.Module, /) -> None:
    """Refuse a model with parts that cannot be trained privately; name each, why, and the way out.

    It looks at the model as it is now: batch normalisation is accepted while it is in evaluation
    mode and frozen, so a call of ``model.train()`` calls for another look.

    >>> check(nn.Sequential(nn.Linear(2, 4), nn.LayerNorm(4)))
    >>> check(nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: this model cannot be trained privately as it is:
      '1' (BatchNorm2d) normalises each example by the others of its batch:
      discreet.learn.fix(model) makes it GroupNorm(4, 16); or freeze it with .eval() and
      .requires_grad_(False).
    Build the optimizer after fixing: a fixed model is a copy with parameters of its own.
    """
    problems = [*_module_problems(model)]
    told = [str(problem) for problem in problems] + [*_parameter_problems(model)]
    if not told:
        return
    lines = ["this model cannot be trained privately as it is:", *(f"  {line}" for line in told)]
    if any(problem.replace for problem in problems):
        lines.append(
            "Build the optimizer after fixing: a fixed model is a copy with parameters of its own."
        )
    raise ParameterError("\n".join(lines), parameter="model")


def fixes(model: nn.Module, /) -> tuple[str, ...]:
    """Say what :func:`fix` would change in a model, one line for each module.

    >>> fixes(nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64)))
    ("'1': BatchNorm2d -> GroupNorm(16, 64)",)
    """
    return tuple(
        f"{_called(problem.name)}: {problem.kind} -> {problem.becomes}"
        for problem in _module_problems(model)
        if problem.replace
    )


def fix(model: nn.Module, /) -> nn.Module:
    """Return a copy of a model with its fixable modules replaced; the model itself is untouched.

    Batch normalisation becomes group normalisation, with the same weights, device and type, and
    at least 4 channels in a group (16 where examples may be plain vectors); a dropout and an
    activation inside it are kept. Instance normalisation
    loses its running statistics, an embedding its ``max_norm`` and ``scale_grad_by_freq``. A
    replaced module computes something else than before, so a trained model needs some further
    training. Build the optimizer for the copy. :func:`fixes` lists the changes, which are logged.

    >>> model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64))
    >>> fix(model)
    Sequential(
      (0): Conv2d(3, 64, kernel_size=(3, 3), stride=(1, 1))
      (1): GroupNorm(16, 64, eps=1e-05, affine=True...)
    )
    >>> check(fix(model))
    """
    copied = copy.deepcopy(model)
    replaced: dict[nn.Module, nn.Module] = {}
    modules = dict(copied.named_modules())
    for problem in _module_problems(copied):
        if problem.replace:
            replaced[modules[problem.name]] = problem.replace()
            _log.info("%s: %s -> %s", _called(problem.name), problem.kind, problem.becomes)
    # By parent rather than by name: a module used in two places stays one module.
    for parent in modules.values():
        for name, child in parent._modules.items():
            if child in replaced:
                parent._modules[name] = replaced[child]
    return replaced.get(copied, copied)


def _called(name: str) -> str:
    return repr(name) if name else "the model itself"


def _module_problems(model: nn.Module) -> Iterator[_Problem]:
    for name, module in model.named_modules():
        for find in (_lazy, _hooked, _normalisation, _embedding, _spectral, _statistics):
            problem = find(name, module)
            if problem:
                yield problem
                break


def _lazy(name: str, module: nn.Module) -> _Problem | None:
    if not any(_is_lazy(p) for p in module.parameters(recurse=False)):
        return None
    return _Problem(
        name=name,
        kind=type(module).__name__,
        reason="has no weights yet",
        remedy="run the model once on made-up data of the right shape",
    )


def _hooked(name: str, module: nn.Module) -> _Problem | None:
    if not module._backward_hooks and not module._backward_pre_hooks:
        return None
    return _Problem(
        name=name,
        kind=type(module).__name__,
        reason="has a backward hook, which sees raw gradients of all examples and may change them",
        remedy="remove it",
    )


def _is_lazy(parameter: nn.Parameter) -> bool:
    return bool(is_lazy(parameter))


def _normalisation(name: str, module: nn.Module) -> _Problem | None:
    if not isinstance(module, _BatchNorm | _InstanceNorm) or _is_fixed_map(module):
        return None
    kind = type(module)
    frozen = "freeze it with .eval() and .requires_grad_(False)"
    if isinstance(module, _BatchNorm):
        reason = "normalises each example by the others of its batch"
        if not _is_followed_by_its_children(module):
            remedy = f"replace it by group normalisation, or {frozen}"
            return _Problem(name=name, kind=kind.__name__, reason=reason, remedy=remedy)
        groups, kept = _groups(module), [inner for inner, _ in module.named_children()]
        return _Problem(
            name=name,
            kind=kind.__name__,
            reason=reason,
            remedy=f"or {frozen}" if module.track_running_stats else "",
            replace=lambda: _group_norm(module, groups),
            becomes=f"GroupNorm({groups}, {module.num_features})"
            + (f" with its {', '.join(kept)}" if kept else ""),
        )
    if not module.track_running_stats:
        return None
    reason = "keeps running statistics of the data, without noise"
    if kind not in _INSTANCE_NORMS:
        remedy = f"build it with track_running_stats=False, or {frozen}"
        return _Problem(name=name, kind=kind.__name__, reason=reason, remedy=remedy)
    return _Problem(
        name=name,
        kind=kind.__name__,
        reason=reason,
        remedy=f"or {frozen}",
        replace=lambda: _instance_norm(module),
        becomes=f"{kind.__name__} without running statistics",
    )


def _is_fixed_map(module: _BatchNorm | _InstanceNorm) -> bool:
    """Say whether a normalisation uses frozen statistics and learns nothing."""
    learns = any(p.requires_grad for p in module.parameters(recurse=False))
    return not module.training and module.track_running_stats and not learns


def _groups(module: _BatchNorm) -> int:
    # A vector has one number per channel: a group of few channels would leave little of it.
    least = 16 if isinstance(module, nn.BatchNorm1d | nn.SyncBatchNorm) else 4
    channels = int(module.num_features)
    most = max(1, min(_MOST_GROUPS, channels // least))
    return next(groups for groups in range(most, 0, -1) if channels % groups == 0)


def _group_norm(module: _BatchNorm, groups: int) -> nn.Module:
    kind = GroupNormThen if any(True for _ in module.children()) else nn.GroupNorm
    new = kind(groups, module.num_features, eps=module.eps, affine=module.affine)
    for name, child in module.named_children():
        new.add_module(name, child)
    return _keeping(new, module)


def _is_followed_by_its_children(module: _BatchNorm) -> bool:
    """Say whether a batch norm normalises, does what the modules inside it do, and nothing else.

    A subclass may do more than its parent, such as dropout and activation. What it does is tried
    on made-up numbers, in a copy and in evaluation mode.
    """
    if type(module) in _BATCH_NORMS:
        return True
    twin, chance = copy.deepcopy(module).eval(), torch.Generator().manual_seed(7)
    buffers = (twin.running_mean, twin.running_var)
    like = next((t for t in (*twin.parameters(), *buffers) if t is not None), torch.empty(0))
    plain: Any = (twin.weight, twin.bias, twin.running_mean is None, 0.0, twin.eps)
    for space in ((), (3,), (3, 3), (3, 3, 3)):
        rows = torch.randn(4, module.num_features, *space, generator=chance).to(like)
        with torch.no_grad():
            out = nn.functional.batch_norm(rows, *buffers, *plain)
            for child in twin.children():
                out = child(out)
            try:
                found = twin(rows)
            except Exception:  # it wants rows of another shape, or more than rows
                found = None
        if isinstance(found, torch.Tensor):
            return torch.allclose(found, out)
    return False


@final
class GroupNormThen(nn.GroupNorm):
    """Normalise groups of channels, then apply the modules inside, in their order.

    What :func:`fix` makes of a batch norm that brings its dropout and its activation along.

    >>> norm = GroupNormThen(2, 4)
    >>> norm.act = nn.ReLU()
    >>> bool((norm(torch.randn(3, 4, 5)) >= 0).all())
    True
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalised rows after what follows."""
        x = super().forward(x)
        for child in self.children():
            x = child(x)
        return x


def _instance_norm(module: _InstanceNorm) -> nn.Module:
    new = type(module)(module.num_features, eps=module.eps, affine=module.affine)
    return _keeping(new, module)


def _keeping(new: nn.Module, old: nn.Module) -> nn.Module:
    """Give a new module the parameters and the mode of the one that it replaces."""
    for name in ("weight", "bias"):
        new.register_parameter(name, getattr(old, name, None))
    return new.train(old.training)


def _embedding(name: str, module: nn.Module) -> _Problem | None:
    if not isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return None
    if module.max_norm is not None:
        reason = "rescales, without noise, the rows that a batch looks up (max_norm)"
    elif module.scale_grad_by_freq and any(p.requires_grad for p in module.parameters()):
        reason = "divides gradients by how often the whole batch uses a row (scale_grad_by_freq)"
    else:
        return None

    def replace() -> nn.Module:
        module.max_norm, module.scale_grad_by_freq = None, False
        return module

    return _Problem(
        name=name,
        kind=type(module).__name__,
        reason=reason,
        remedy="",
        replace=replace,
        becomes=f"{type(module).__name__} without it",
    )


def _spectral(name: str, module: nn.Module) -> _Problem | None:
    hooks = [type(hook).__name__ for hook in module._forward_pre_hooks.values()]
    if "SpectralNorm" in hooks:
        remedy = "remove it with torch.nn.utils.remove_spectral_norm"
    elif type(module).__name__ == "_SpectralNorm":
        remedy = "remove it with torch.nn.utils.parametrize.remove_parametrizations"
    else:
        return None
    return _Problem(
        name=name,
        kind=type(module).__name__,
        reason="changes its weights in every forward pass (spectral norm), so the parts of a batch "
        "would meet different models",
        remedy=remedy,
    )


def _statistics(name: str, module: nn.Module) -> _Problem | None:
    """Find modules of unknown kinds that keep statistics of what passes through them."""
    kinds = {kind.__name__ for kind in type(module).__mro__}
    own = {buffer for buffer, _ in module.named_buffers(recurse=False)}
    observes = bool(kinds & {"ObserverBase", "FakeQuantizeBase"})
    averages = {"running_mean", "running_var"} <= own and "frozen" not in str(kinds).lower()
    known = isinstance(module, _BatchNorm | _InstanceNorm)
    if known or not module.training or not (observes or averages):
        return None
    return _Problem(
        name=name,
        kind=type(module).__name__,
        reason="keeps statistics of the data, without noise",
        remedy="remove it, or freeze it with .eval()",
    )


def _parameter_problems(model: nn.Module) -> Iterator[str]:
    named = [(name, p) for name, p in model.named_parameters() if not _is_lazy(p)]
    trainable = [(name, p) for name, p in named if p.requires_grad]
    if not trainable and not any(_is_lazy(p) for p in model.parameters()):
        yield "it has no trainable parameters: call .requires_grad_(True) on what should learn."
    for name, parameter in trainable:
        if parameter.dtype not in _DTYPES:
            yield f"parameter {name!r} is {_dtype(parameter)}: use float32, bfloat16 or float16."
    devices = sorted({str(p.device) for _, p in named})
    if "meta" in devices:
        yield "it has parameters on the meta device: load their values."
    elif len(devices) > 1:
        yield f"its parameters are on several devices ({', '.join(devices)}): move them to one."


def _dtype(parameter: nn.Parameter) -> str:
    return str(parameter.dtype).removeprefix("torch.")


@final
class CheckedModel:
    """A model that is checked anew whenever it was changed between steps.

    >>> checked = CheckedModel(nn.Linear(2, 1), ())
    >>> checked.look()
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: the model's trainable parameters are not those ...
    """

    def __init__(self, model: nn.Module, parameters: Iterable[nn.Parameter]) -> None:
        self._model, self._parameters = model, tuple(parameters)
        self._modes: list[bool] = []

    def look(self) -> bool:
        """Return whether something changed that matters, and refuse what must not change."""
        trained = [id(p) for p in self._model.parameters() if p.requires_grad]
        if trained != [id(p) for p in self._parameters]:
            raise ParameterError(
                "the model's trainable parameters are not those that the run was prepared with: "
                "some were frozen, unfrozen or replaced. Nothing was spent. Prepare a new run.",
                parameter="model",
            )
        modes = [module.training for module in self._model.modules()]
        if modes == self._modes:
            return False
        check(self._model)  # after train() or eval()
        self._modes = modes
        return True
