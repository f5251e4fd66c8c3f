"""The documents are true: examples run, links lead somewhere, and no file is forgotten.

The examples of one document share a session, in a directory of their own with `people.csv`: Python
is run and its output compared, `$ sulq` commands must end as they say, a policy is written down.
`sulq serve &` serves in a process of its own, at a free port in place of 8765, until the document
ends or says `kill %1`.
Answers are noisy, so numbers may differ from what is printed, except those before "credits"; but
in docs/papers.md nothing is noisy, and every digit counts.
"""

from __future__ import annotations

import csv
import doctest
import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

import sulq
import sulq.federation
import sulq.learn
from sulq.cli import app
from sulq.client.remote import Remote, RemoteReserved

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sulq"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")])
EXACT = ROOT / "docs" / "papers.md"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^\$ (?:sulq )?(.*?)(?: > (\w+\.\w+))?(?: +# exit (\d))?$", re.MULTILINE)
ADDRESS = "http://127.0.0.1:8765"
NUMBER = re.compile(r"-?\d++(?:,\d{3})*+(?:\.\d*+)?+(?:e[+-]?\d++)?+(?! credits)")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def blocks(path: Path) -> list[tuple[str, int, str]]:
    """What a document has between fences and can be run: its language, line and text."""
    text = text_of(path)
    found = [
        (found[1], text.count("\n", 0, found.start()) + 1, found[2])
        for found in FENCE.finditer(text)
    ]
    return [block for block in found if block[0] in ("python", "console", "toml")]


# --- examples -----------------------------------------------------------------------------------


def write_people(path: Path) -> None:
    """20,000 fictional people."""
    random = Random(2005)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["age", "income", "smoker", "city"])
        for _ in range(20_000):
            age, income = random.randint(0, 99), round(random.gammavariate(2, 20_000))
            table.writerow([age, income, random.random() < 0.2, random.choice(["Oslo", "Paris"])])


class Noisy(doctest.OutputChecker):
    """As doctest, but numbers that are not a price may be other numbers."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        return super().check_output(NUMBER.sub("#", want), NUMBER.sub("#", got), optionflags)


class Session:
    """What the examples of one document share: names, and the server that they started."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.server: subprocess.Popen[str] | None = None
        self.address = ADDRESS

    def serve(self) -> None:
        """`sulq serve`, but without the clock of its replies, which takes long to set."""
        command = ["-m", "sulq", "serve", "--port", "0", "--json", "--no-open", "--no-pacing"]
        self.server = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.server.stdout is not None
        self.address = json.loads(self.server.stdout.readline())["address"]

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=60)
            self.server = None

    def run_commands(self, text: str) -> None:
        for words, file, code in COMMAND.findall(text):
            if words == "serve &":
                self.serve()
            elif words == "kill %1":
                self.stop()
            elif words != "demo":
                ended = CliRunner().invoke(app, shlex.split(words))
                assert ended.exit_code == int(code or 0), f"sulq {words}: {ended.output}"
                if file:
                    Path(file).write_text(ended.stdout, "utf-8")

    def close(self) -> None:
        self.stop()
        for value in self.names.values():
            if isinstance(value, sulq.Database | Remote) and not isinstance(value, RemoteReserved):
                value.close()


def run_examples(path: Path) -> doctest.TestResults:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker() if path == EXACT else Noisy()
    runner = doctest.DocTestRunner(checker, verbose=False, optionflags=flags)
    with closing(Session()) as session:
        for language, line, text in blocks(path):
            code = text.replace(ADDRESS, session.address)
            if language == "console":
                session.run_commands(code)
            elif language == "toml":
                Path("sulq.toml").write_text(code, "utf-8")
            elif ">>>" not in code:
                exec(compile(code, f"{named(path)}:{line}", "exec"), session.names)
            else:
                examples = doctest.DocTestParser()
                test = examples.get_doctest(code, session.names, named(path), str(path), line)
                runner.run(test, clear_globs=False)
                session.names = test.globs
    return runner.summarize(verbose=False)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("documents") / "people.csv"
    write_people(table)
    return table


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if blocks(p)], ids=named)
def test_examples_run(
    path: Path,
    people: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copyfile(people, tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    found = run_examples(path)
    assert found.failed == 0, capsys.readouterr().out


def test_a_wrong_example_is_caught(tmp_path: Path) -> None:
    """Prices and words must be right; noisy numbers need only be numbers."""
    noisy = Noisy()
    assert noisy.check_output("<Answer 6,780, 1 credits>", "<Answer -12.5, 1 credits>", 0)
    assert not noisy.check_output("<Answer 6,780, 1 credits>", "<Answer 6,780, 2 credits>", 0)
    assert not noisy.check_output("7 of 1,000 credits", "7 of 2,000 credits", 0)
    assert not noisy.check_output("<Answer 6,780>", "<Quote 6,780>", 0)


def test_the_table_of_the_papers_is_what_its_examples_print() -> None:
    """Each row's two figures are those its section prints, and agree."""
    text = text_of(EXACT)
    rows = re.findall(r"^\| (\d+) \| .* \| (\S+) \| (\S+) \|$", text, re.MULTILINE)
    sections = re.split(r"^## (\d+)\. .*$", text, flags=re.MULTILINE)
    printed = {
        number: re.findall(r"^product (\S+), independent (\S+)$", body, re.MULTILINE)
        for number, body in zip(sections[1::2], sections[2::2], strict=True)
    }
    assert [number for number, _, _ in rows] == [str(n + 1) for n in range(len(rows))]
    assert printed == {number: [(product, own)] for number, product, own in rows}
    assert [number for number, product, own in rows if product != own] == []
    assert len(rows) >= 23


def test_the_lines_of_the_papers_table_name_what_there_is() -> None:
    """A dotted name is one of the package as it is today, a command one that parses so far."""
    found = re.findall(
        r"^\| \d+ \| .* \| `([^`]+)`.* \| \S+ \| \S+ \|$", text_of(EXACT), re.MULTILINE
    )
    assert len(found) >= 23
    for line in found:
        if line.startswith("sulq "):
            _, command, *options = shlex.split(line)
            shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
            assert shown.exit_code == 0, line
            assert [
                one for one in options if one.startswith("--") and one not in shown.output
            ] == []
        elif called := re.match(r"([a-z_]+(?:\.[a-z_]+)*)\.(\w+)\(", line):
            module, name = called.groups()
            if module != "db":
                assert (SOURCE / Path(*module.split("."))).with_suffix(".py").is_file() or (
                    SOURCE / Path(*module.split(".")) / "__init__.py"
                ).is_file(), line
                assert hasattr(importlib.import_module(f"sulq.{module}"), name), line
        elif called := re.match(r"([A-Za-z_]+)\(", line):
            assert any(hasattr(home, called[1]) for home in (sulq, sulq.learn, sulq.federation)), (
                line
            )


# --- links and names ----------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """Headings as a web page would name them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text_of(path)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text_of(path))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        found = path if not name else (path.parent / name)
        if not found.exists() or (anchor and anchor not in anchors(found)):
            yield target


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    assert list(broken_links(path)) == []


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path.stat().st_size)


NAMING = [path for path in DOCUMENTS if named(path) not in ("docs/modules.md", "CHANGELOG.md")]


@pytest.mark.parametrize("path", NAMING, ids=named)
def test_no_page_names_a_file_that_is_not_there(path: Path) -> None:
    names = set(re.findall(r"`([\w./-]+/?[\w-]+\.py)`", FENCE.sub("", text_of(path))))
    homes = (ROOT, SOURCE, ROOT / "tests" / "house")
    assert [name for name in names if not any((home / name).exists() for home in homes)] == []


def test_every_invariant_names_its_guard() -> None:
    told = text_of(ROOT / "ARCHITECTURE.md")
    table = re.findall(r"^\| (\d) \| .*? \| (.*?) \|$", told, re.MULTILINE)
    assert [number for number, _ in table] == [str(number) for number in range(1, 10)]
    assert all(re.search(r"`tests/[\w/]+\.py`", guards) for _, guards in table)


def test_proofs_that_modules_cite_exist() -> None:
    cited = {
        (path.relative_to(SOURCE).as_posix(), proof)
        for path in modules()
        for proof in re.findall(r"docs/proofs/\w+\.md", text_of(path))
    }
    assert len(cited) > 5
    assert [pair for pair in sorted(cited) if not (ROOT / pair[1]).exists()] == []


def test_the_reference_tells_of_every_public_name() -> None:
    told = text_of(ROOT / "docs" / "reference" / "python.md")
    assert [name for name in sulq.__all__ if f"`{name}" not in told] == []


def test_every_document_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for target in LINK.findall(text_of(index))
    }
    lost = [named(path) for path in ROOT.glob("docs/**/*.md") if path not in linked]
    assert [path for path in lost if path != "docs/index.md"] == []
