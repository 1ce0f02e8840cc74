"""Shuffling: between devices and the analyser somebody who forgets who sent what.

Devices seal their reports to the analyser with :class:`Envelopes` and send them to a
:class:`Shuffler`, which gives them out in batches; an :class:`Analyser` pays the ledger for a batch
and opens it. :class:`Amplification` says what a batch costs. ``discreet.shuffle.running`` has both
as processes; it needs the extra ``serve``.

>>> from discreet import shuffle
>>> round(shuffle.Amplification(epsilon0=1, honest=10_000, delta=1e-6).epsilon_2023, 4)
0.0432
"""

from discreet.shuffle.analyser.amplification import Amplification, composed
from discreet.shuffle.analyser.analyser import Analyser, OpenedBatch
from discreet.shuffle.analyser.estimate import ShuffledEstimate
from discreet.shuffle.analyser.settings import AnalyserSettings
from discreet.shuffle.batches.batch import BatchFacts, SignedBatch, read_batch, read_vouching_key
from discreet.shuffle.envelopes.keys import SealingKey, UnsealingKey
from discreet.shuffle.envelopes.sealing import Envelopes
from discreet.shuffle.messages.comparison import standard_errors
from discreet.shuffle.messages.dummies import Dummies
from discreet.shuffle.messages.estimates import DummyEstimate, SumEstimate
from discreet.shuffle.messages.histogram import MultiMessageHistogram
from discreet.shuffle.messages.sum import MultiMessageSum
from discreet.shuffle.shuffler.settings import ShufflerSettings
from discreet.shuffle.shuffler.shuffler import Shuffler
from discreet.shuffle.shuffler.verdict import Arrival, Verdict

__all__ = [
    "Amplification",
    "Analyser",
    "AnalyserSettings",
    "Arrival",
    "BatchFacts",
    "Dummies",
    "DummyEstimate",
    "Envelopes",
    "MultiMessageHistogram",
    "MultiMessageSum",
    "OpenedBatch",
    "SealingKey",
    "ShuffledEstimate",
    "Shuffler",
    "ShufflerSettings",
    "SignedBatch",
    "SumEstimate",
    "UnsealingKey",
    "Verdict",
    "composed",
    "read_batch",
    "read_vouching_key",
    "standard_errors",
]
