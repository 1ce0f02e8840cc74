"""Python says of the vectors what they say; browsers are held to the same file."""

import json

import numpy as np
import pytest
from wire_vectors import VECTORS, Bytes

from discreet.errors import DataError
from discreet.local.wire import encode, read_parameters, report_length, sort_out
from discreet.local.wire.kinds import KINDS

VECTOR = json.loads(VECTORS.read_text())["reports"]


def test_each_kind_that_browsers_know_has_a_vector():
    known = {one["parameters"]["randomiser"]["kind"] for one in VECTOR}
    assert {kind.name for kind in KINDS} - known == {"bit-flip"}


@pytest.mark.parametrize("vector", VECTOR, ids=lambda one: one["parameters"]["randomiser"]["kind"])
def test_a_vector_is_read_and_written(vector):
    parameters = read_parameters(json.dumps(vector["parameters"]))
    assert parameters.canonical.decode() == vector["canonical"]
    assert parameters.digest.hex() == vector["digest"]
    sent = bytes.fromhex(vector["bytes"])
    assert len(sent) == report_length(parameters)
    assert sent[:33].hex() == ("01" + parameters.collection + vector["digest"] + vector["token"])
    found = sort_out(parameters, [sent])
    assert found.reports.tolist() == [vector["report"]]
    assert found.tokens == [bytes.fromhex(vector["token"])]
    reports = np.array([vector["report"]], dtype=found.reports.dtype)
    assert encode(parameters, reports, source=Bytes(found.tokens[0])) == [sent]


@pytest.mark.parametrize("vector", VECTOR, ids=lambda one: one["parameters"]["randomiser"]["kind"])
def test_no_number_of_a_vector_may_differ(vector):
    law = vector["parameters"]["randomiser"]
    for name in law.keys() - {"kind", "domain", "epsilon", "first", "optimized"}:
        for step in (-1, 1):
            changed = law | {name: str(int(law[name]) + step)}
            with pytest.raises(DataError):
                read_parameters(json.dumps(vector["parameters"] | {"randomiser": changed}))
