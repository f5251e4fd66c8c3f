"""The whole description of the API, sent by every role: no server error, every refusal a problem.

`sulq serve` in a process of its own, with the table and a draft that the description can name.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.faults.serving import Process, published, running

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip("schemathesis")

pytestmark = pytest.mark.filterwarnings("ignore")
ROLES = ["auditor", "analyst", "owner"]
SOURCE = {"source": "people.parquet"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with running(published(tmp_path_factory.mktemp("fuzzed"))) as process:
        yield process


@pytest.fixture(scope="module")
def operations(server: Process) -> list:
    """What there is; what turns the table off comes last."""
    described = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    found = [operation.ok() for operation in described.get_all_operations()]
    return sorted(found, key=lambda operation: operation.path.endswith("/close"))


@pytest.fixture(scope="module")
def tokens(server: Process) -> dict[str, str]:
    granted = {
        role: server.post("grants", {"name": role, "role": role, **share}, f"grant-{role}").json()
        for role, share in (("analyst", {"credits": 20}), ("auditor", {}))
    }
    return {"owner": server.token} | {role: reply["token"] for role, reply in granted.items()}


@pytest.mark.parametrize("most", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_no_request_makes_a_server_error(server, operations, tokens, most):
    """Each request that is made up is sent by everybody; the owner, who may change most, last."""
    callers = {role: {"Authorization": f"Bearer {tokens[role]}"} for role in ROLES}
    seen = {role: Counter[int]() for role in ROLES}
    for operation in operations:
        known = {"table": "people"}
        if "/drafts/{number}" in operation.path:
            draft = httpx.post(
                f"{server.url}/v1/drafts", json=SOURCE, headers=callers["owner"], timeout=120
            )
            known = {"number": draft.json()["id"]}
        fuzz(operation, most, known, server.url, callers, seen)
    for role, found in seen.items():
        assert found.total() > 20 * most
        assert found[200], role
    assert seen["owner"][422] and seen["auditor"][403]


def fuzz(operation, most, known, url, callers, seen) -> None:
    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def one(case):
        for name in set(known) & set(case.path_parameters or {}):
            case.path_parameters[name] = known[name]
        for role, headers in callers.items():
            reply = case.call(base_url=url, headers=headers)
            seen[role][reply.status_code] += 1
            told = (role, case.method, case.path, case.body, reply.text)
            assert reply.status_code < 500, told
            if reply.status_code >= 400:
                assert reply.headers["content-type"][0].startswith("application/problem+json"), told

    one()
