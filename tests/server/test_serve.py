"""`sulq serve` and the end of `sulq demo`, as processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import write_people
from tests.waiting import LONGEST
from typer.testing import CliRunner

from sulq.cli import app
from sulq.cli.server_process import Where
from sulq.kernel.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]
POLICY = """
[people]
source = "people.parquet"
ledger = "{ledger}"
promise = {{epsilon = 1, delta = 1e-6, queries = 20}}
apart = true
columns.age = {{number = [0, 110], step = 1}}
columns.smoker = {{flag = true}}

[town]
source = "town.parquet"
ledger = "people.ledger"
promise = {{epsilon = 1, delta = 1e-6, queries = 30}}
apart = true
columns.age = {{number = [0, 110], step = 1}}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A directory with a policy of two tables on one ledger."""
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    write_people(tmp_path / "people.parquet")
    write_people(tmp_path / "town.parquet", 2_000)
    (tmp_path / "sulq.toml").write_text(POLICY.format(ledger="people.ledger"))
    return tmp_path


def sulq(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sulq", *words]
    return subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def published(home):
    """The same, with both tables published."""
    for name in ("people", "town"):
        policy = str(home / "sulq.toml")
        found = CliRunner().invoke(app, ["publish", name, "--yes", "--policy", policy])
        assert found.exit_code == 0, found.output
    return home


@contextmanager
def running(home: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    command = [sys.executable, "-m", "sulq", "serve", "--port", "0", "--json", *words]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=log, text=True)
    with process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, (home / "log").read_text()
            yield process, json.loads(line)
        finally:
            if process.poll() is None:
                process.kill()


def test_serve_answers_refuses_a_second_one_and_stops_cleanly(home, published, monkeypatch):
    with running(home, "--no-pacing") as (process, told):
        url, link = str(told["address"]), str(told["link"])
        assert told["tables"] == ["people", "town"]
        assert url.startswith("http://127.0.0.1:")
        code = link.partition("#")[2]
        entered = httpx.post(f"{url}/v1/enter", json={"code": code}, timeout=LONGEST).json()
        assert entered["role"] == "owner"
        headers = {
            "Authorization": f"Bearer {entered['token']}",
            "Idempotency-Key": "a-key-of-mine",
        }
        sql = {"sql": "SELECT COUNT(*) FROM people WHERE smoker"}
        reply = httpx.post(f"{url}/v1/tables/people/sql", json=sql, headers=headers, timeout=120)
        assert reply.status_code == 200
        page = httpx.get(f"{url}/v1/tables/people/report", headers=headers, timeout=120)
        assert "Audit report" in page.text
        assert "style-src 'sha256-" in page.headers["content-security-policy"]

        check = [sys.executable, str(ROOT / "deploy" / "healthcheck.py")]  # of the image
        assert subprocess.run(check, env={"SULQ_HEALTH": url}, check=False).returncode == 0

        policy = ["--policy", str(home / "sulq.toml")]
        here = CliRunner()  # these are of another process than the server
        assert here.invoke(app, ["verify", "people", *policy]).exit_code == 0  # side by side
        monkeypatch.setitem(Ledger.open.__func__.__kwdefaults__, "wait", 0.1)
        second = here.invoke(app, ["serve", "--port", "0", *policy])
        assert second.exit_code == 3
        assert f"held by process {process.pid}" in second.stderr
        busy = here.invoke(app, ["serve", "--port", url.rpartition(":")[2], *policy])
        assert busy.exit_code == 3
        assert "--port" in busy.stderr

        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    logged = (home / "log").read_text()
    assert "Traceback" not in logged
    assert str(entered["token"]) not in logged and code not in logged
    with running(home, "--no-pacing") as (process, _):  # the ledger was left tidy
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


@pytest.mark.slow
def test_a_file_is_served_by_the_policy_beside_it(home, published, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with running(elsewhere, str(home / "people.parquet")) as (process, told):
        assert told["tables"] == ["people"]
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0


@pytest.mark.slow
def test_what_is_not_published_is_listed_and_not_served(home):
    assert sulq(home, "publish", "town", "--yes").returncode == 0
    with running(home, "--no-pacing") as (_, told), entered(told) as owner:
        assert (told["tables"], told["not_published"]) == (["town"], ["people"])
        assert owner.get("/v1/tables/people/schema").status_code == 404
        page = owner.get("/console/town/publish").text
        assert "sulq publish people" in page and "sulq publish town" not in page
        begun = owner.post("/v1/drafts", json={"source": "people.parquet"}).json()
        checked = owner.get(f"/v1/drafts/{begun['id']}/check").json()
        assert any("of this name already" in fault for fault in checked["faults"])
    assert "`sulq publish people`" in (home / "log").read_text()
    assert sulq(home, "verify", "town", "--json").returncode == 0
    assert sulq(home, "ledger", "people").returncode == 3


@pytest.mark.slow
def test_without_any_table_the_console_offers_the_wizard(home):
    for text in (None, "# nothing yet\n"):
        policy = home / "sulq.toml"
        policy.unlink()
        if text is not None:
            policy.write_text(text)
        with running(home, "--no-pacing") as (_, told), entered(told) as owner:
            assert (told["tables"], told["not_published"]) == ([], [])
            assert "Publish your first table" in owner.get("/console/home").text
            assert "people.parquet" in owner.get("/console/new/publish").text
            assert owner.get("/v1/tables").json()["tables"] == []
        policy.touch()
    assert not list(home.glob("*.ledger"))


def entered(told: dict[str, object]) -> httpx.Client:
    """A client with the owner's token."""
    url, code = str(told["address"]), str(told["link"]).partition("#")[2]
    token = httpx.post(f"{url}/v1/enter", json={"code": code}, timeout=LONGEST).json()["token"]
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lonely/x.parquet"], "sulq init"),
        (["--policy", "none.toml"], "sulq init"),
        (["other.parquet"], "declares no table"),
        (["--tls-cert", "cert.pem"], "both or none"),
        (["--tls-cert", "sulq.toml", "--tls-key", "sulq.toml"], "PEM"),
        (["--host", "0.0.0.0", "--no-pacing"], "this machine only"),
        (["--policy", "memory.toml"], "in memory"),
    ],
)
def test_what_cannot_be_served_says_why(home, monkeypatch, words, said):
    monkeypatch.chdir(home)
    (home / "lonely").mkdir()
    (home / "memory.toml").write_text(POLICY.format(ledger=":memory:"))
    found = CliRunner().invoke(app, ["serve", *words])
    assert found.exit_code in (2, 3)
    assert said in found.stderr
    assert not (home / "people.ledger").exists()


@pytest.mark.slow
def test_other_hosts_without_tls_are_warned_of(home):
    with running(home, "--host", "0.0.0.0") as (process, told):
        assert str(told["address"]).startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    assert "without TLS anybody" in (home / "log").read_text()


@pytest.mark.slow
def test_the_demo_serves_checks_itself_and_ends_in_a_pipe(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert sulq(home, "demo", "--people", "1000", "--port", port).returncode == 3
    found = sulq(home, "demo", "--people", "1000", "--json", "--port", "0")
    assert found.returncode == 0, found.stderr
    last = json.loads(found.stdout)[-1]
    assert (last["step"], last["healthy"]) == ("served", True)
    quiet = sulq(home, "demo", "--people", "1000", "--no-serve", "--json")
    assert json.loads(quiet.stdout)[-1]["step"] == "next"


def test_no_reply_waits_for_an_acknowledgement():
    with Where(port=0).listen() as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_help_and_the_package_load_no_server():
    heavy = "{'fastapi', 'uvicorn', 'httpx', 'pydantic', 'starlette', 'jinja2'}"
    program = f"import sys, sulq, sulq.cli; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[]\n"
