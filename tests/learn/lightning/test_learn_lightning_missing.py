"""Where lightning is not installed."""

import sys

import pytest
from private_runs import begin

from discreet.errors import MissingExtra
from discreet.learn.lightning import make_trainer


def test_without_lightning_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.delitem(sys.modules, "discreet.learn.lightning.trainer", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'discreet\[lightning\]'"):
        make_trainer(begin())
