"""Import paths that documents showed before version 0.2, and where these modules live now.

A path of the table imports the module at its new place: both names are one module. Old code keeps
working; new code should use the new path.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "sulq.accounting": "sulq.kernel.accounting",
    "sulq.accounting.calibration": "sulq.kernel.accounting.calibration",
    "sulq.accounting.delay": "sulq.kernel.accounting.mechanisms",
    "sulq.accounting.losses": "sulq.kernel.accounting.loss",
    "sulq.cli.attack_chart": "sulq.cli.attack",
    "sulq.engines": "sulq.kernel.engines",
    "sulq.engines.csv_files": "sulq.kernel.engines.duckdb.csv_files",
    "sulq.engines.remote": "sulq.kernel.engines.duckdb.remote",
    "sulq.engines.workbooks": "sulq.kernel.engines.duckdb.workbooks",
    "sulq.exact.auditor": "sulq.exact.printed.auditor",
    "sulq.exact.counterexamples": "sulq.exact.printed.counterexamples",
    "sulq.exact.known_laws": "sulq.exact.printed.laws",
    "sulq.exact.moments": "sulq.exact.printed.moments",
    "sulq.exact.papers": "sulq.exact.printed.checks",
    "sulq.kernel.query.statistics": "sulq.answers.statistics",
    "sulq.learn.plots": "sulq.learn.plotting.registry",
    "sulq.learn.shares": "sulq.learn.statistical_query",
    "sulq.learn.statistical": "sulq.learn.statistical_query",
    "sulq.ledger": "sulq.kernel.ledger",
    "sulq.ledger.inspection": "sulq.kernel.ledger.inspect",
    "sulq.ledger.receipts": "sulq.kernel.ledger.signing",
    "sulq.noise": "sulq.kernel.noise",
    "sulq.noise.distributions": "sulq.kernel.noise.laws",
    "sulq.query": "sulq.kernel.query",
    "sulq.query.expressions": "sulq.kernel.query.expressions",
    "sulq.query.statistics": "sulq.answers.statistics",
    "sulq.query.vectors": "sulq.kernel.query.vectors",
    "sulq.schema": "sulq.kernel.schema",
    "sulq.schema.bound": "sulq.kernel.schema.program",
    "sulq.schema.population": "sulq.kernel.schema.promise",
    "sulq.server.access": "sulq.server.auth.tokens",
    "sulq.server.tables": "sulq.server.service.catalog",
    "sulq.sql.estimates": "sulq.sql.evaluate.result",
}


class _Moved(MetaPathFinder, Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])


def install() -> None:
    """Make the old paths importable. Called once, when `sulq` is imported."""
    sys.meta_path.insert(0, _Moved())
