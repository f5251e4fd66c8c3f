"""Who may import whom. The one place where the architecture's contracts are written as code.

Imports point down, siblings of one row do not know each other, and learners and attackers cannot
reach, by any path, what reads rows, draws noise or spends. Modules that do not exist are skipped.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import grimp
import pytest
from tests.syntax import parsed

SOURCE = Path(__file__).parents[2] / "src" / "sulq"

LAYERS = [
    {"cli"},
    {"sandbox"},
    {"server", "demo"},
    {"report"},
    {"dbapi"},
    {"client", "database", "federation", "learn", "attacks"},
    {"account"},
    {"exact", "sql", "studies", "wire", "policy", "suggest"},
    {"shares"},
    {"answers"},
    {"beliefs", "synthetic", "formatting"},
    {"kernel"},
    {"errors", "moved"},
]
KERNEL_LAYERS = [
    {"release"},
    {"ledger", "engines", "reuse"},
    {"accounting"},
    {"schema", "noise"},
    {"query", "postgresql"},
]

# importer -> what it must not reach, directly or through others
OUTSIDE_THE_SEAM = ("learn", "attacks", "beliefs", "client", "federation", "dbapi")
BEHIND_THE_SEAM = (
    "kernel.noise.sampler",
    "kernel.noise.entropy",
    "kernel.ledger",
    "kernel.engines",
    "exact",
    "database",
)
FORBIDDEN = {
    **dict.fromkeys(OUTSIDE_THE_SEAM, BEHIND_THE_SEAM),
    "kernel.engines": ("kernel.noise", "kernel.accounting", "kernel.ledger"),
    "answers": ("kernel.ledger",),
    "kernel.ledger": ("answers",),
}

# The public page imports what it shows, so only the top rows may import from it.
USERS_OF_THE_PAGE = ("sulq.cli", "sulq.server", "sulq.report", "sulq.demo")

# Imports of our own modules inside a function: only where a missing extra must not stop the rest,
# or where most processes never need them and would start slower (HTTP, SQL, the parts of `outer`).
OUTER = (
    "kernel/query/sum_query.py",
    "kernel/schema/bind.py",
    "kernel/engines/duckdb/engine.py",
    "kernel/engines/postgres/engine.py",
    "kernel/engines/spark/engine.py",
    "kernel/engines/sql/engine.py",
)
SELDOM = (
    "client/__init__.py",
    "sql/__init__.py",
    "database/individual.py",
    "database/vault.py",
)
LATE_IMPORTS = (
    "cli/",
    "kernel/engines/engine.py",
    "kernel/engines/tally.py",
    "database/database.py",
    *SELDOM,
    *OUTER,
)
NOISE = ("sulq.kernel.noise",)
# The flow; the level of an alert, which no row is read for; the time of a reply.
DRAWING = ("sulq.kernel.release", "sulq.database.alerts", "sulq.database.delay")

# The owner's counts of rows: who may take them, and who may show what was advised from them.
TALLY = "sulq.kernel.engines.tally"
OPENERS_OF_ROWS = (
    "sulq.kernel.engines.duckdb.engine",
    "sulq.kernel.engines.postgres.engine",
    "sulq.kernel.engines.spark.engine",
)
ADVICE = "sulq.policy.advice"
SHOWING_ADVICE = (
    "sulq.cli",
    "sulq.server.drafts",
    "sulq.server.routes.drafts",
    "sulq.server.console.publish",
)


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def layer_faults(graph: grimp.ImportGraph) -> set[str]:
    return {
        " -> ".join([min(route.heads), *route.middle, min(route.tails)])
        for container, rows in (("sulq", LAYERS), ("sulq.kernel", KERNEL_LAYERS))
        for fault in graph.find_illegal_dependencies_for_layers(
            [grimp.Layer(*row, independent=True) for row in rows], containers={container}
        )
        for route in fault.routes
    }


def forbidden_faults(graph: grimp.ImportGraph) -> set[str]:
    return {
        " -> ".join(chain)
        for importer, targets in FORBIDDEN.items()
        for target in targets
        if {f"sulq.{importer}", f"sulq.{target}"} <= graph.modules
        for chain in graph.find_shortest_chains(f"sulq.{importer}", f"sulq.{target}")
    }


def drawing_faults(graph: grimp.ImportGraph) -> set[str]:
    """Few draw: who may import samplers, entropy and all in noise that reaches it."""
    bits = "sulq.kernel.noise.entropy"
    reaching = graph.find_downstream_modules(bits) if bits in graph.modules else set()
    draws = {bits, "sulq.kernel.noise.sampler"} | {name for name in reaching if within(name, NOISE)}
    return {
        f"{importer} -> {module}"
        for module in draws & graph.modules
        for importer in graph.find_modules_that_directly_import(module)
        if not within(importer, DRAWING)
        and (importer == "sulq.kernel.noise" or not within(importer, NOISE))
    }


def page_faults(graph: grimp.ImportGraph) -> set[str]:
    importers = graph.find_modules_that_directly_import("sulq")
    return {name for name in importers if not within(name, USERS_OF_THE_PAGE)}


def owner_faults(graph: grimp.ImportGraph) -> set[str]:
    """Counts of rows reach the owner's screens and nothing else: no question, ledger or reply."""
    allowed = {TALLY: (ADVICE, *OPENERS_OF_ROWS), ADVICE: SHOWING_ADVICE}
    return {
        f"{importer} -> {module}"
        for module, importers in allowed.items()
        if module in graph.modules
        for importer in graph.find_modules_that_directly_import(module)
        if not within(importer, importers)
    }


CONTRACTS = [layer_faults, forbidden_faults, drawing_faults, page_faults, owner_faults]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("sulq", cache_dir=None)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_contract_is_kept(contract, graph):
    assert contract(graph) == set()


def test_every_module_has_its_row():
    for folder, rows in ((SOURCE, LAYERS), (SOURCE / "kernel", KERNEL_LAYERS)):
        found = {
            path.stem
            for path in folder.iterdir()
            if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
        }
        assert found - {"__init__", "__main__"} <= set().union(*rows)


@pytest.mark.parametrize(
    ("contract", "path"),
    [
        (layer_faults, ("sulq.kernel.query", "sulq.kernel.schema")),
        (layer_faults, ("sulq.errors", "sulq.cli.init")),
        (layer_faults, ("sulq.kernel.schema.bind", "sulq.kernel.noise.laws")),
        (layer_faults, ("sulq.report", "sulq.server.app")),
        (forbidden_faults, ("sulq.learn.cluster.kmeans", "sulq.database")),
        (
            forbidden_faults,
            ("sulq.attacks.side_channels", "sulq.sql", "sulq.kernel.engines.duckdb.engine"),
        ),
        (forbidden_faults, ("sulq.client", "sulq", "sulq.database")),
        (forbidden_faults, ("sulq.kernel.engines.blocks", "sulq.kernel.accounting.loss")),
        (forbidden_faults, ("sulq.kernel.ledger.ledger", "sulq.answers.oracle")),
        (drawing_faults, ("sulq.kernel.noise", "sulq.kernel.noise.sampler")),
        (drawing_faults, ("sulq.exact.topup", "sulq.kernel.noise.sampler")),
        (drawing_faults, ("sulq.database.plan", "sulq.kernel.noise.sampler")),
        (drawing_faults, ("sulq.demo", "sulq.kernel.noise.sampler", "sulq.kernel.noise.entropy")),
        (page_faults, ("sulq.kernel.ledger.ledger", "sulq")),
        (owner_faults, ("sulq.database.publish", "sulq.kernel.engines.tally")),
        (owner_faults, ("sulq.server.service.session", "sulq.policy.advice")),
        (owner_faults, ("sulq.policy", "sulq.policy.advice")),
    ],
)
def test_planted_import_is_caught(contract, path, graph):
    planted = deepcopy(graph)
    for module in path:
        for end in range(1, module.count(".") + 2):
            planted.add_module(".".join(module.split(".")[:end]))
    for importer, imported in pairwise(path):
        planted.add_import(importer=importer, imported=imported)
    assert contract(planted) - contract(graph)


def test_only_the_tally_opens_rows_as_they_lie_there():
    faults = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if {"raw_duckdb", "raw_postgres", "raw_spark"} & set(re.findall(r"\w+", path.read_text()))
    }
    opening = {"duckdb/engine", "postgres/engine", "spark/engine", "tally"}
    assert faults == {f"kernel/engines/{name}.py" for name in opening}


def test_line_planted_in_a_file_is_caught(tmp_path):
    """From source text to verdict, hidden in a function: the graph must not overlook it."""
    shutil.copytree(SOURCE, tmp_path / "sulq")
    with (tmp_path / "sulq" / "kernel" / "query" / "__init__.py").open("a") as file:
        file.write("\n\ndef hidden() -> None:\n    import sulq.kernel.ledger\n")
    program = (
        "import runpy, grimp; "
        f"house = runpy.run_path({str(Path(__file__))!r}); "
        "print(house['layer_faults'](grimp.build_graph('sulq', cache_dir=None)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "sulq.kernel.query -> sulq.kernel.ledger" in run.stdout


def late_imports(tree: ast.Module) -> set[str]:
    """Modules of ours, or of the standard library, imported inside a function."""
    found: set[str] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found.add(node.module or "")
    ours = {"sulq", *sys.stdlib_module_names}
    return {name for name in found if name.partition(".")[0] in ours}


def test_only_optional_packages_are_imported_late():
    faults = {
        f"{path.relative_to(SOURCE).as_posix()}: {name}"
        for path in SOURCE.rglob("*.py")
        if not path.relative_to(SOURCE).as_posix().startswith(LATE_IMPORTS)
        for name in late_imports(parsed(path))
    }
    assert faults == set()


def test_late_import_is_caught():
    text = "import os\ndef f():\n    import pandas\n    from sulq.kernel.ledger import journal\n"
    assert late_imports(ast.parse(text)) == {"sulq.kernel.ledger"}
