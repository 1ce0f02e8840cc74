"""Run a mechanism and read whatever it returns as numbers and words."""

from discreet.audit.outputs.collecting import Raised, collect
from discreet.audit.outputs.reading import Reader, Reading, fit_reader

__all__ = ["Raised", "Reader", "Reading", "collect", "fit_reader"]
