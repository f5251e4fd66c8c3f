"""The whole description of the API, fuzzed: no server error, no reply that is not described."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from tests.server.conftest import Served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip("schemathesis")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("who", ["owner", "analyst", "auditor"])
def test_no_request_makes_a_server_error(server: Served, who: str):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    asked = 0
    for operation in schema.get_all_operations():
        strategy = operation.ok().as_strategy()

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=strategy)
        def fuzz(case):
            nonlocal asked
            asked += 1
            reply = case.call(
                base_url=server.url, headers={"Authorization": f"Bearer {server.tokens[who]}"}
            )
            assert reply.status_code < 500, (case.method, case.path, reply.text)
            if reply.status_code >= 400:
                assert reply.headers["content-type"][0].startswith("application/problem+json")

        fuzz()
    assert asked > 200
