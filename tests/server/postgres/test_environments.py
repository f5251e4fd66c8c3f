"""Programs that want an environment of their own: Superset, and %sql of a notebook.

The environment variable SULQ_SUPERSET or SULQ_JUPYSQL names the Python of one that has it:
`pip install apache-superset psycopg2-binary`, `pip install jupysql psycopg2-binary pandas`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.server.postgres.conftest import CHARTS, Door
from tests.waiting import LONGEST

SUPERSET = os.environ.get("SULQ_SUPERSET", "")
JUPYSQL = os.environ.get("SULQ_JUPYSQL", "")


def address(door: Door, purpose: str) -> str:
    spend = f"options=-csulq.credits%3D200%20-csulq.purpose%3D{purpose}" if purpose else ""
    token = door.tokens["analyst"]
    return f"postgresql+psycopg2://ann:{token}@127.0.0.1:{door.port}/people?{spend}"


def run(python: str, *words: str) -> str:
    ended = subprocess.run([python, *words], capture_output=True, text=True, timeout=4 * LONGEST)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.slow
@pytest.mark.skipif(not SUPERSET, reason="no Superset: SULQ_SUPERSET names a Python that has it")
def test_superset(door: Door, tmp_path: Path) -> None:
    before, script = door.left, str(Path(__file__).with_name("superset_charts.py"))
    told = json.loads(
        run(SUPERSET, script, str(tmp_path), address(door, "superset")).splitlines()[-1]
    )
    assert told["tables"] == ["people"] and told["times"] == ["day", "seen"]
    assert told["columns"]["age"] == "BIGINT" and told["columns"]["seen"] == "TIMESTAMP"
    assert told["failed"] == [] and {"A", "B", "0"} <= set(told["values"])
    assert told["rows"][:4] == [1, 4, 12, 4] and told["rows"][-1] == 0  # rows are never shown
    spent = before - door.left
    assert 0 < spent <= 200
    (tmp_path / "again").mkdir()
    run(SUPERSET, script, str(tmp_path / "again"), address(door, ""))  # at 0: told before
    assert before - door.left == spent


NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "sql")
shell.run_line_magic("config", "SqlMagic.displaycon = False")
shell.run_line_magic("sql", sys.argv[1])
found = [len(shell.run_line_magic("sql", text).DataFrame()) for text in json.loads(sys.argv[2])]
cell = "SELECT blood, COUNT(*) AS n FROM people WHERE age > {{older}} GROUP BY blood"
shell.user_ns["older"] = 33
print("rows", found, list(shell.run_cell_magic("sql", "", cell).DataFrame().columns))
"""


@pytest.mark.slow
@pytest.mark.skipif(not JUPYSQL, reason="no %sql: SULQ_JUPYSQL names a Python that has JupySQL")
def test_sql_magic(door: Door) -> None:
    said = run(JUPYSQL, "-c", NOTEBOOK, address(door, "notebook"), json.dumps(CHARTS))
    last = next(line for line in said.splitlines() if line.startswith("rows"))
    assert last.startswith("rows [1, 1, ") and last.endswith("['blood', 'n']")
