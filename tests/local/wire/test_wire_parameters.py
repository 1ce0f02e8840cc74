"""A parameters document is read only if every number in it is the one we would write."""

import json
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from discreet import local
from discreet.errors import DataError, ParameterError
from discreet.local.wire import Parameters, parameters_of, read_parameters

WEEK = {
    "not_before": datetime(2030, 1, 1, tzinfo=UTC),
    "not_after": datetime(2030, 1, 8, tzinfo=UTC),
}


def a_question(**changed) -> Parameters:
    given = {
        "name": "Fährt ihr 🚲?",
        "a_day": 1,
        "lifetime": Fraction(7, 2),
        "values": ["yes", "no", "„vielleicht“"],
    }
    return parameters_of(local.DirectResponse(domain=3, epsilon=0.5), **(given | WEEK | changed))


def changed(parameters: Parameters, **members) -> str:
    return json.dumps(parameters.document | members)


def test_what_is_written_is_read():
    parameters = a_question()
    assert read_parameters(parameters.canonical) == parameters
    # The order of members and the space between them are not what is said.
    loose = json.dumps(dict(reversed(parameters.document.items())), indent=2)
    assert read_parameters(loose).digest == parameters.digest


def test_the_digest_tells_all_parameters_apart():
    one = a_question()
    others = [
        a_question(name="other"),
        a_question(a_day=2),
        a_question(lifetime=5),
        a_question(values=None),
        a_question(not_after=None),
    ]
    assert len({other.digest for other in [one, *others]}) == 6


@pytest.mark.parametrize(
    "members",
    [
        {"randomiser": {"kind": "direct", "domain": 3, "epsilon": "1/2", "keep": str(2**64 - 1)}},
        {"randomiser": {"kind": "direct", "domain": 3, "epsilon": "1/2"}},
        {"randomiser": {"kind": "telepathy", "domain": 3, "epsilon": "1/2", "keep": "1"}},
        {"randomiser": {"kind": "direct", "domain": 3.0, "epsilon": "1/2", "keep": "1"}},
        {"randomiser": {"kind": "local-hashing", "domain": 3, "epsilon": "9" * 400, "keep": "1"}},
        {"collection": 1234567890123456},
        {"randomiser": {"kind": "direct", "domain": True, "epsilon": "1/2", "keep": "1"}},
        {"randomiser": {"kind": "direct", "domain": 10**400, "epsilon": "1/2", "keep": "1"}},
        {"randomiser": {"kind": "direct", "domain": 3, "epsilon": "1e999999999", "keep": "1"}},
        {"randomiser": "direct"},
        {"format": "discreet-local/2"},
        {"collection": "00"},
        {"collection": 7},
        {"name": ""},
        {"a_day": "2/4"},
        {"a_day": 1},
        {"a_day": "1/4"},
        {"lifetime": "1/4"},
        {"values": ["yes", "no"]},
        {"values": ["yes", "no", "no"]},
        {"values": ["yes", "no", {}]},
        {"values": "yes"},
        {"not_before": "yesterday"},
        {"not_before": 7},
        {"surprise": 1},
    ],
    ids=lambda members: ",".join(f"{key}={str(value)[:60]}" for key, value in members.items()),
)  # fmt: skip
def test_a_changed_document_is_refused(members):
    with pytest.raises(DataError):
        read_parameters(changed(a_question(), **members))


@pytest.mark.parametrize("document", ["", "[]", "{}", b"\xff", "[" * 9999, '{"a":1,"a":1}'])
def test_what_is_no_document_is_refused(document):
    with pytest.raises(DataError):
        read_parameters(document)


@pytest.mark.parametrize(
    "given",
    [
        {"a_day": Fraction(1, 3)},
        {"lifetime": Fraction(1, 4)},
        {"name": "x" * 201},
        {"name": "\ud800"},
        {"values": ["yes", "no"]},
        {"not_before": datetime(2030, 1, 1)},  # noqa: DTZ001 - the point
    ],
)
def test_parameters_that_no_device_could_follow_are_refused(given):
    with pytest.raises(ParameterError):
        a_question(**given)


def test_a_randomiser_that_does_not_travel_is_refused():
    with pytest.raises(ParameterError, match="one that devices know"):
        parameters_of(object(), name="x", a_day=1, lifetime=1)
