"""`sulq grant`, `revoke` and `tokens`: with the ledger at hand, and through a running server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import httpx
import pytest
from tests.waiting import LONGEST

from sulq.errors import Refused
from sulq.server.auth.tokens import Access
from sulq.server.local_control import RunningServer, serving

SOURCE = Path(__file__).parents[2] / "src"


def test_a_monitor_is_given_a_token_without_a_table(sulq):
    reply = sulq("grant", "watch", "--role", "monitor", "--days", "30")
    assert (reply.code, len(reply.out.splitlines())) == (0, 1)
    access = Access.open()
    caller = access.caller(reply.out.strip())
    access.close()
    assert (caller.name, str(caller.role), caller.tables) == ("watch", "monitor", frozenset())
    assert json.loads(sulq("grant", "w", "--role", "monitor", "--json").out)["role"] == "monitor"
    for wrong in (["--credits", "2"], ["--token", caller.token_id]):
        refused = sulq("grant", "watch", "--role", "monitor", *wrong)
        assert refused.code == 2 and "leave both out" in refused.err
    assert sulq("grant", "people", "watch", "--role", "monitor").code == 2
    assert sulq("grant", "watch", "--role", "auditor", "--token", caller.token_id).code == 3
    assert sulq("revoke", "--token", caller.token_id).code == 0


def test_the_token_is_on_stdout_and_nothing_else(sulq):
    reply = sulq("grant", "ann", "--credits", "2.5", "--days", "30", "--rate", "60/min")
    assert reply.code == 0
    token = reply.out.strip()
    assert token.startswith("sulq_") and len(token) == 48 and len(reply.out.splitlines()) == 1
    assert "2.5 credits of people" in reply.err and token not in reply.err
    access = Access.open()
    caller, (line,) = access.caller(token), access.list()
    access.close()
    assert caller.tables == line.tables.keys() and "people" not in caller.tables
    assert (caller.name, str(caller.rate)) == ("ann", "60/min")
    assert list(line.tables.values()) == ["people"]
    assert 29 * 86_400 < caller.expires - time.time() <= 30 * 86_400
    state = Path(os.environ["SULQ_STATE"])
    kept = [path.read_bytes() for path in [*state.rglob("*"), *Path().rglob("*")] if path.is_file()]
    assert not any(token[5:].encode() in content for content in kept)


def test_a_second_token_needs_no_second_share(sulq):
    first = sulq("grant", "people", "ann", "2", "--json").json
    second = sulq("grant", "ann", "--json").json
    assert first["token"] != second["token"]
    assert (second["granted_exact"], len(second["tokens"])) == ("2", 2)


def test_roles_other_than_analysts_have_no_share(sulq):
    assert sulq("grant", "ann", "1").code == 0
    assert sulq("grant", "eve", "--role", "auditor", "--json").json["role"] == "auditor"
    assert sulq("grant", "eve", "1", "--role", "auditor").code == 2
    assert sulq("grant", "eve", "--role", "king").code == 2
    assert sulq("grant", "ann", "1", "--credits", "2").code == 2
    assert sulq("grant", "ann", "--days", "0").code == 2


def test_one_token_ends_by_its_id(sulq):
    for _ in range(2):
        sulq("grant", "ann", "--credits", "5", "--json")
    first, second = sulq("tokens", "--json").json
    shown = sulq("tokens").out
    assert first["id"] in shown and "given" in shown
    assert sulq("revoke", "--token", first["id"], "--json").json["name"] == "ann"
    states = [line["state"] for line in sulq("tokens", "--json").json]
    assert states == ["revoked", "good"]
    assert sulq("revoke", "--token", first["id"]).code == 3
    assert sulq("revoke", "ann", "--token", second["id"]).code == 2
    assert "1 token ended" in sulq("revoke", "ann").err


def test_access_ends_while_the_rows_are_away(sulq):
    sulq("grant", "ann", "4")
    sulq("grant", "bob", "4")
    Path("people.parquet").write_bytes(b"other rows")
    assert sulq("revoke", "ann", "--json").json["tokens_ended"] == 1
    Path("people.parquet").unlink()
    assert sulq("revoke", "bob", "--json").json["returned_exact"] == "4"
    assert [line["state"] for line in sulq("tokens", "--json").json] == ["revoked", "revoked"]
    assert sulq("close", "--reason", "lost", "--yes", "--json").json["reason"] == "lost"


def test_revoke_ends_tokens_and_returns_credits(sulq):
    sulq("grant", "ann", "5")
    found = sulq("revoke", "ann", "--reason", "left us", "--json").json
    assert (found["tokens_ended"], found["returned_exact"]) == (1, "5")
    assert sulq("revoke", "ann").code == 3
    (line,) = sulq("tokens", "--json").json
    assert (line["name"], line["state"]) == ("ann", "revoked")
    assert "revoked" in sulq("tokens").out
    assert sulq("ask", "count", "--as", "ann").code == 3


@contextmanager
def server(*more: str) -> Iterator[subprocess.Popen[str]]:
    """`sulq serve` of the directory's policy, in a process of its own."""
    command = [sys.executable, "-m", "sulq", "serve", "--port", "0", "--json", "--no-open", *more]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            process.address = said["address"]  # type: ignore[attr-defined]
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


def told() -> list[Path]:
    return sorted((Path(os.environ["SULQ_STATE"]) / "serving").glob("*.json"))


def test_commands_go_through_the_server_that_has_the_ledger(sulq):
    sulq("grant", "ann", "1")
    with server() as process:
        (path,) = told()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        found = sulq("grant", "bob", "--credits", "3", "--json")
        assert found.code == 0, found.err
        assert found.json["granted_exact"] == "3" and "/enter#" in found.json["link"]
        headers = {"Authorization": f"Bearer {found.json['token']}"}
        with httpx.Client(base_url=process.address, headers=headers, timeout=LONGEST) as client:
            assert client.get("/v1/me").json()["name"] == "bob"
            assert sulq("revoke", "bob", "--json").json["returned_exact"] == "3"
            assert client.get("/v1/me").status_code == 401
        assert sulq("grant", "bob", "1000").code == 3
        amended = sulq("amend", "--yes")
        assert (amended.code, "stop it, amend" in amended.err) == (3, True)
        assert sulq("grant", "b/b", "1").code == 2
        assert [line["name"] for line in sulq("tokens", "--json").json] == ["ann", "bob"]
    assert told() == []
    assert sulq("grant", "bob", "1", "--json").json["left_exact"] == "1"


@pytest.mark.slow
def test_a_table_is_closed_through_its_server(sulq):
    sulq("grant", "ann", "1")
    with server():
        Path("people.parquet").unlink()  # the ledger is enough, there as here
        assert sulq("revoke", "ann", "--json").json["returned_exact"] == "1"
        assert sulq("close").code == 2  # it asks first
        assert sulq("close", "--reason", "done", "--yes", "--json").json["reason"] == "done"
        assert sulq("grant", "bob", "1").code == 3
    assert "done" in sulq("close", "--json", "--yes").out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_a_server_with_tls_is_known_by_its_own_certificate(sulq):
    """Made out to another name, signed by nobody: it is this very one that is trusted."""
    sulq("grant", "ann", "1")
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stats.example -keyout k -out c"
    subprocess.run(["openssl", *made.split()], check=True, capture_output=True)
    with server("--tls-cert", "c", "--tls-key", "k") as process:
        assert process.address.startswith("https://")
        assert sulq("grant", "bob", "2", "--json").json["granted_exact"] == "2"
        (path,) = told()
        said = json.loads(path.read_text())
        other = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stats.example -keyout l -out d"
        subprocess.run(["openssl", *other.split()], check=True, capture_output=True)
        found = RunningServer(**{**said, "certificate": str(Path("d").absolute())})
        with pytest.raises(Refused, match="does not answer"):
            found.request("GET", "/v1/me")


@pytest.mark.slow
def test_what_a_killed_server_left_behind_is_noticed(sulq):
    sulq("grant", "ann", "1")
    with server() as process:
        (path,) = told()
        token = json.loads(path.read_text())["token"]
        process.kill()
        process.wait()
        assert path.exists()
        assert sulq("grant", "bob", "1").code == 0
        assert told() == []
    access = Access.open()
    assert access.caller(token) is None  # it was good in that process only
    access.close()


@pytest.mark.slow
def test_a_file_that_tells_nonsense_is_dropped(sulq):
    sulq("grant", "ann", "1")
    with server():
        (path,) = told()
    for content in (
        "{}",
        "no json",
        '{"url":"http://127.0.0.1:1","token":"t","process":1,"tables":{}}',
    ):
        path.write_text(content)
        assert serving("people.ledger") is None
        assert not path.exists()
    assert serving("none.ledger") is None


def test_a_token_carries_a_second_table(sulq):
    policy = Path("sulq.toml")
    text = policy.read_text()
    duckdb.sql("FROM 'people.parquet' LIMIT 20").write_parquet("visits.parquet")
    policy.write_text(text + text.replace("people", "visits") + "apart = true\n")
    first = sulq("grant", "people", "ann", "2", "--json").json
    token_id = first["tokens"][0]["id"]
    reply = sulq("grant", "visits", "ann", "3", "--token", token_id)
    assert reply.code == 0 and reply.out == ""
    assert f"token {token_id} carries visits too, as analyst" in reply.err
    reply = sulq("grant", "visits", "ann", "--role", "auditor", "--token", token_id)
    assert reply.code != 0 and "another token" in reply.err
    assert "people, visits" in sulq("tokens").out
    assert sulq("tokens", "--json").json[0]["roles"] == {"people": "analyst", "visits": "analyst"}
