"""What is deployed fits together: locked packages, image, health check, compose file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = ("learn", "report", "yaml", "postgres")
CONTAINERFILE = (DEPLOY / "Containerfile").read_text("utf-8")


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of every package of a lock file."""
    found = {}
    for entry in re.split(r"\n(?=\S)", (DEPLOY / name).read_text("utf-8").strip()):
        parts = entry.replace("\\\n", " ").split()
        package, _, version = parts[0].partition("==")
        assert version and all(part.startswith("--hash=sha256:") for part in parts[1:]), parts[0]
        found[canonicalize_name(package)] = (version, parts[1:])
    return found


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock"])
def test_every_locked_package_has_one_version_and_hashes(name: str) -> None:
    found = locked(name)
    assert found and all(hashes for _, hashes in found.values())
    assert "://" not in (DEPLOY / name).read_text("utf-8")  # no address of an index


def test_the_lock_is_what_the_project_asks_for() -> None:
    """Also after a floor was raised: then `make lock` writes it anew."""
    project = PROJECT["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    found = locked("requirements.lock")
    for text in wanted:
        asked = Requirement(text)
        version, _ = found[canonicalize_name(asked.name)]
        assert asked.specifier.contains(version), text
    assert "psycopg-binary" in found  # the image can keep a shared ledger
    for text in PROJECT["build-system"]["requires"]:
        asked = Requirement(text)
        assert asked.specifier.contains(locked("requirements-build.lock")[asked.name][0])


@pytest.mark.parametrize(
    ("package", "too_old"),
    [("h11", "0.15.0"), ("pynacl", "1.6.1"), ("pydantic", "2.8"), ("starlette", "0.39")],
)
def test_floors_keep_known_holes_out(package: str, too_old: str) -> None:
    asked = {
        Requirement(text).name: Requirement(text) for text in PROJECT["project"]["dependencies"]
    }
    assert not asked[package].specifier.contains(too_old)


def test_the_image_is_built_of_what_the_context_lets_in() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"  # a clone's .venv and a table beside it stay out
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    project = PROJECT["project"]
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {"pyproject.toml", project["readme"], *project["license-files"]}
    needed |= {Path(package).parts[0] for package in packages}
    copied = re.findall(r"^COPY (?!--from)(\S+) ", CONTAINERFILE, re.MULTILINE)
    needed |= {path for path in copied if path != "."}
    assert needed <= let_in
    assert all((ROOT / path).exists() for path in (*let_in, *copied))
    installs = [line for line in CONTAINERFILE.splitlines() if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def test_the_health_check_is_in_the_image_and_names_the_port() -> None:
    (command,) = re.findall(r"HEALTHCHECK [^[]*CMD (\[.*\])", CONTAINERFILE)
    place = json.loads(command)[1]
    assert f"COPY deploy/healthcheck.py {place}\n" in CONTAINERFILE
    port = re.search(r"EXPOSE (\d+)", CONTAINERFILE)
    assert port and f":{port[1]}" in (DEPLOY / "healthcheck.py").read_text("utf-8")


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (None, 1)])
def test_the_health_check_tells_a_server_that_answers(status: int | None, code: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" and status else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if status is None:
        server.shutdown()
        server.server_close()
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "healthcheck.py")],
        env={"SULQ_HEALTH": f"http://127.0.0.1:{port}", "HTTP_PROXY": "http://127.0.0.1:9"},
        check=False,
    )
    assert done.returncode == code
    if status is not None:
        server.shutdown()
        server.server_close()


def test_the_table_of_the_compose_file_stays_out_of_build_and_repository() -> None:
    """Its head says to copy the table into deploy/."""
    rules = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "- ./table:/srv/sulq" in (DEPLOY / "compose.yaml").read_text("utf-8")
    let_in = [rule[1:] for rule in rules if rule.startswith("!")]
    assert not any("deploy/table/people.csv".startswith(path) for path in let_in)
    assert "/deploy/table/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_the_compose_file_holds_together() -> None:
    yaml = pytest.importorskip("yaml")
    form = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    server, postgres = form["services"]["server"], form["services"]["postgres"]
    context = (DEPLOY / server["build"]["context"]).resolve()
    assert context == ROOT and (context / server["build"]["dockerfile"]).exists()
    assert server["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert postgres["healthcheck"]["test"][1] == "pg_isready"
    assert server["environment"]["PGPASSWORD"] == postgres["environment"]["POSTGRES_PASSWORD"]
    assert server["read_only"] and server["cap_drop"] == ["ALL"] and server["ulimits"]["core"] == 0
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert f"STOPSIGNAL {server['stop_signal']}" in CONTAINERFILE
    named = {text.split(":")[0] for text in (*server["volumes"], *postgres["volumes"])}
    assert {name for name in named if not name.startswith(".")} == set(form["volumes"])
    inside = {text.split(":")[1] for text in server["volumes"]}
    assert inside == set(json.loads(re.findall(r"VOLUME (\[.*\])", CONTAINERFILE)[0]))


@pytest.mark.slow
def test_the_list_of_packages_is_cyclonedx(tmp_path: Path) -> None:
    """`make sbom` validates it against the schema; here: it names what is locked."""
    if not (ROOT / ".venv-lock" / ".tools").exists():
        pytest.skip("no .venv-lock here: `make sbom` builds it")
    done = subprocess.run([ROOT / "scripts/lock", "--sbom"], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    form = json.loads((ROOT / "build/sbom.cdx.json").read_text("utf-8"))
    assert form["bomFormat"] == "CycloneDX"
    listed = {part["purl"] for part in form["components"]}
    assert listed == {
        f"pkg:pypi/{name}@{at}" for name, (at, _) in locked("requirements.lock").items()
    }
