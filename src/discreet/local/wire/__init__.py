"""What devices are told, and the bytes they send: parameters documents and reports, version 1."""

from discreet.local.wire.parameters import Parameters, parameters_of, read_parameters
from discreet.local.wire.reports import HEADER, TOKEN, Sorted, encode, report_length, sort_out

__all__ = [
    "HEADER",
    "Parameters",
    "Sorted",
    "TOKEN",
    "encode",
    "parameters_of",
    "read_parameters",
    "report_length",
    "sort_out",
]
