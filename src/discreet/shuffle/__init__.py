"""Shuffled privacy: devices' messages, mixed before anybody reads them.

>>> from discreet import shuffle
>>> histogram = shuffle.MultiMessageHistogram.calibrated(
...     epsilon=1, delta=1e-6, domain=100, honest=10_000)
>>> histogram.loss.delta_upper(epsilon=1) <= 1e-6
True
"""

from discreet.shuffle.messages.comparison import standard_errors
from discreet.shuffle.messages.estimates import DummyEstimate, SumEstimate
from discreet.shuffle.messages.histogram import MultiMessageHistogram
from discreet.shuffle.messages.sum import MultiMessageSum

__all__ = [
    "DummyEstimate",
    "MultiMessageHistogram",
    "MultiMessageSum",
    "SumEstimate",
    "standard_errors",
]
