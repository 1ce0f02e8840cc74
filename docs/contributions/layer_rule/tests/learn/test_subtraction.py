import pytest
import torch
from oracle import clipped_sum, gradients
from torch import nn

from discreet.learn.choices.clipping import Flat
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.rules.elementwise import subtract
from discreet.learn.rules.table import RULES


class Centred(nn.Module):
    def __init__(self, is_first):
        super().__init__()
        self.centre, self.is_first = nn.Parameter(torch.randn(5)), is_first

    def forward(self, x):
        return self.centre - x if self.is_first else x - self.centre


@pytest.mark.parametrize("is_first", [True, False])
def test_a_parameter_that_is_subtracted_gets_each_unit_clipped_exactly(is_first):
    model, batch = Centred(is_first), (torch.randn(6, 5), torch.randn(6, 5))

    def loss(model, batch):
        return (model(batch[0]) * batch[1]).tanh().sum(1)

    engine = GradientEngine(model, clipping=Flat(norm=0.5))
    engine.accumulate(loss, batch, units=6)
    expected = clipped_sum(gradients(model, loss, batch, 6), 0.5)
    assert torch.allclose(engine.flat.buffer.double(), expected, rtol=1e-4, atol=1e-6)
    assert RULES[torch.Tensor.__sub__] is subtract
