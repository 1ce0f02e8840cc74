"""Whatever fits the OpenAPI document, or just does not, gets an answer that fits it."""

import contextlib

import pytest
import schemathesis
from gateway_sites import make_site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    negative_data_rejection,
    unsupported_method,
)

pytestmark = pytest.mark.lengthy
EXAMPLES = 60
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
    ignored_auth,
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"), epsilon=10_000)


@pytest.fixture(scope="module")
def operations(site):
    with site.running() as url:
        schema = schemathesis.openapi.from_url(f"{url}/v1/openapi.json")
        found = [one.ok() for one in schema.get_all_operations()]
        yield {one.definition.raw["operationId"]: one for one in found}


CUSTODIANS = {
    "register", "grant", "limit", "policy", "reopen", "keys", "make_key", "revoke_key", "metrics",
}  # fmt: skip
ANALYSTS = {"quote", "query", "plan", "begin_job", "job"}
ANYBODY = {
    "me", "datasets", "dataset", "budgets", "releases", "receipt", "checkpoint", "consistency",
    "alive", "ready",
}  # fmt: skip


def test_every_operation_is_tried(operations):
    assert set(operations) == CUSTODIANS | ANALYSTS | ANYBODY


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", sorted(CUSTODIANS | ANALYSTS | ANYBODY))
def test_no_request_is_answered_otherwise_than_the_document_says(operations, site, name, mode):
    """Requests that fit the document (POSITIVE), and some that just do not (NEGATIVE)."""
    operation = operations[name]

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=st.data())
    def tried(data):
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if "dataset" in (case.path_parameters or {}):
            case.path_parameters["dataset"] = "people"  # others get 404 all the time
        who = "chris" if name in CUSTODIANS else "ana"
        found = case.call(headers=site.header(who))
        # The login is ours, so only a body or a parameter can be wrong; a body that is too large
        # is refused with a status that the check does not know.
        wrong = {
            place for place, one in case.meta.components.items() if one.mode.name == "NEGATIVE"
        } - {ParameterLocation.HEADER, ParameterLocation.PATH}
        is_due = wrong and found.status_code != 413
        case.validate_response(found, checks=[*CHECKS, *[negative_data_rejection][: bool(is_due)]])

    with contextlib.suppress(Unsatisfiable):  # nothing to get wrong about a plain GET
        tried()
