"""Optimisers that know about the noise in their gradients."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, final, overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from discreet._exact import Number, nonnegative, positive, probability

__all__ = ["AdamBC"]

_Bucket = tuple[int, float]  # steps taken, average variance of the noise in them


@final
class AdamBC(Optimizer):
    """Run Adam on private gradients, with the noise taken out of the second moment.

    Adam divides by the root of the mean squared gradient. A private gradient is the gradient plus
    noise, and the noise's variance, which is usually much the larger part, makes that root nearly
    the same for all parameters: Adam turns into gradient descent. The variance is public, so it
    can be subtracted: the step is m / sqrt(max(v - variance, floor)).

    ``floor`` bounds the largest step at lr * abs(m) / sqrt(floor) and is worth tuning, together
    with ``lr``. ``weight_decay`` is decoupled from the gradient, as in AdamW.

    Claim: none of its own. It reads released gradients and public numbers only, so whatever it
    does is post-processing.

    Why: v estimates E[(g + noise)**2] = E[g**2] + variance [TSL24, Section 3]. Where the noise
    changes from step to step, as under adaptive clipping, v holds a weighted mean of the squared
    gradients, and the same mean of the variances is subtracted.

    >>> model = nn.Linear(2, 1)
    >>> optimizer = AdamBC(model.parameters(), lr=0.1, floor=1e-8)
    >>> optimizer.tell_noise(0.25)  # training with discreet.learn.prepare does this by itself
    >>> _ = model(torch.ones(3, 2)).sum().backward()
    >>> optimizer.step()
    """

    noise_std: float = 0.0

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        nonnegative(lr, name="lr")
        for name, beta in zip(("betas[0]", "betas[1]"), betas, strict=True):
            probability(beta, name=name, zero=True)
        positive(floor, name="floor")
        nonnegative(weight_decay, name="weight_decay")
        super().__init__(
            params, {"lr": lr, "betas": betas, "floor": floor, "weight_decay": weight_decay}
        )

    def tell_noise(self, std: Number, /) -> None:
        """Tell the standard deviation of the noise in each entry of the next gradients.

        >>> optimizer = AdamBC(nn.Linear(2, 1).parameters())
        >>> optimizer.tell_noise(0.5)
        >>> optimizer.noise_std
        0.5
        """
        self.noise_std = float(nonnegative(std, name="std"))

    @overload
    def step(self, closure: None = ...) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step.

        >>> weight = nn.Parameter(torch.zeros(1))
        >>> weight.grad = torch.ones(1)
        >>> AdamBC([weight], lr=0.5).step()
        >>> round(weight.item(), 6)
        -0.5
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for (steps, variance), parameters in self._buckets(group["params"]).items():
                self._step(group, parameters, steps=steps, variance=variance)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what ``state_dict`` returned, with the moments in the precision they had.

        >>> optimizer = AdamBC(nn.Linear(2, 1).parameters())
        >>> optimizer.load_state_dict(optimizer.state_dict())
        """
        super().load_state_dict(state_dict)
        keys = [key for group in state_dict["param_groups"] for key in group["params"]]
        parameters = [p for group in self.param_groups for p in group["params"]]
        for key, parameter in zip(keys, parameters, strict=True):
            # torch casts moments to the type of the parameter, and half precision would freeze v.
            for name in ("mean", "square") if key in state_dict["state"] else ():
                saved = state_dict["state"][key][name]
                self.state[parameter][name] = saved.to(parameter.device, copy=True)

    def _buckets(self, parameters: list[nn.Parameter]) -> dict[_Bucket, list[nn.Parameter]]:
        """Gather the parameters that have the same history: all of them, as a rule."""
        buckets: dict[_Bucket, list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                like = torch.promote_types(parameter.dtype, torch.float32)
                state["steps"], state["variance"] = 0, 0.0
                state["mean"] = torch.zeros_like(parameter, dtype=like)
                state["square"] = torch.zeros_like(parameter, dtype=like)
            buckets[state["steps"], state["variance"]].append(parameter)
        return buckets

    def _step(
        self, group: dict[str, Any], parameters: list[nn.Parameter], *, steps: int, variance: float
    ) -> None:
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        steps += 1
        variance = beta2 * variance + (1 - beta2) * self.noise_std**2
        for parameter in parameters:
            self.state[parameter].update(steps=steps, variance=variance)
        weights: list[Tensor] = [*parameters]
        means: list[Tensor] = [self.state[p]["mean"] for p in parameters]
        squares: list[Tensor] = [self.state[p]["square"] for p in parameters]
        gradients = [_gradient(p, mean) for p, mean in zip(parameters, means, strict=True)]

        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        debias = 1 - beta2**steps
        roots = torch._foreach_div(squares, debias)
        torch._foreach_sub_(roots, variance / debias)
        torch._foreach_clamp_min_(roots, group["floor"])
        torch._foreach_sqrt_(roots)

        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - lr * group["weight_decay"])
        torch._foreach_addcdiv_(weights, means, roots, -lr / (1 - beta1**steps))


def _gradient(parameter: nn.Parameter, like: Tensor) -> Tensor:
    assert parameter.grad is not None  # only such parameters are in a bucket
    return parameter.grad.to(like.dtype)
