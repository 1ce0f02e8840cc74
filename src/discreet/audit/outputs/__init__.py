"""Run a mechanism and read whatever it returns as numbers and words."""

from discreet.audit.outputs.collecting import Raised, collect
from discreet.audit.outputs.reading import Reader, ReadOutputs, fit_reader

__all__ = ["Raised", "Reader", "ReadOutputs", "collect", "fit_reader"]
