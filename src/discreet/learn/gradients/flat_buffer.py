"""One buffer for the gradients of all trainable parameters."""

from typing import final

import torch
from torch import Tensor, nn

from discreet.errors import ParameterError


@final
class FlatGradient:
    """Hold the gradient of every trainable parameter in one contiguous tensor.

    One buffer is what makes noise a single pass, and a sum over micro-batches or processes a
    single addition.

    >>> model = nn.Linear(3, 2)
    >>> flat = FlatGradient(model)
    >>> flat.buffer.shape, flat.view(0).shape, flat.names
    (torch.Size([8]), torch.Size([2, 3]), ('weight', 'bias'))
    """

    def __init__(self, model: nn.Module) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        if not named:
            raise ParameterError(
                "this model has no trainable parameter. Set requires_grad on what is to be learnt.",
                parameter="model",
            )
        self.names = tuple(name for name, _ in named)
        self.parameters = tuple(parameter for _, parameter in named)
        wide = any(p.dtype == torch.float64 for p in self.parameters)
        self.buffer = torch.zeros(
            sum(p.numel() for p in self.parameters),
            dtype=torch.float64 if wide else torch.float32,
            device=self.parameters[0].device,
        )
        sizes = [p.numel() for p in self.parameters]
        self._starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
        parts = self.buffer.split(sizes)
        self._views = [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    def view(self, index: int) -> Tensor:
        """Return the part of one parameter, in its shape."""
        found: Tensor = self._views[index]
        return found

    def span(self, first: int, last: int) -> Tensor:
        """Return the part of several parameters that follow each other, the last included."""
        return self.buffer[self._starts[first] : self._starts[last + 1]]

    def zero_(self) -> None:
        """Begin a new sum."""
        self.buffer.zero_()

    def to_grads(self) -> None:
        """Hand the buffer to the parameters as their gradients."""
        for parameter, view in zip(self.parameters, self._views, strict=True):
            parameter.grad = view if view.dtype == parameter.dtype else view.to(parameter.dtype)
