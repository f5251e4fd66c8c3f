"""Faults planted one at a time, each found by a named test. `make attacks` prints who found which.

A dozen are planted in every run, without a copy of the product; those of planted_faults.toml break
a line of a copy, and are slow.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.replay.paths import by_keys, by_path
from tests.replay.tables import ADDED, REPLACE, Relation
from tests.replay.world import Divergence

from sulq import Refused
from sulq.answers.oracle import Answer, Quote
from sulq.database import Database
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Geometric
from sulq.kernel.release.release import NoisySums, TopK, UndeclaredKeys
from sulq.kernel.schema.bind import BoundQuery

ROOT = Path(__file__).parents[2]
FAULTS: list[dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("planted_faults.toml").read_text("utf-8")
)["fault"]
FAILED = 1

Patch = Callable[[pytest.MonkeyPatch], None]


def less(law: Any) -> Any:
    """The same law with a quarter of its spread."""
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.sigma_squared / 16)
    return type(law)(law.scale / 4) if isinstance(law, DiscreteLaplace | Geometric) else law


def lifted_twice(patch: pytest.MonkeyPatch) -> None:
    whole = BoundQuery.lifted
    patch.setattr(BoundQuery, "lifted", lambda bound, sums: [2 * v for v in whole(bound, sums)])


def half_price(patch: pytest.MonkeyPatch) -> None:
    whole = Loss.of
    patch.setattr(Loss, "of", lambda credits, delta=0: whole(Fraction(credits) / 2, delta))


def little_noise(patch: pytest.MonkeyPatch) -> None:
    laws = NoisySums.laws.fget  # type: ignore[attr-defined]
    patch.setattr(NoisySums, "laws", property(lambda one: [less(law) for law in laws(one)]))


def little_choice(patch: pytest.MonkeyPatch) -> None:
    laws = TopK.laws.fget  # type: ignore[attr-defined]
    patch.setattr(TopK, "laws", property(lambda one: [less(law) for law in laws(one)]))


def note_counts_rows(patch: pytest.MonkeyPatch) -> None:
    told = Answer.of.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, bound: Any, values: Any, laws: Any, **more: Any) -> Answer:
        answer: Answer = told(cls, bound, values, laws, **more)
        return replace(answer, note=f"{TABLE[-1].engine.size()} rows")

    patch.setattr(Answer, "of", classmethod(counted))


def refused_without_rows(patch: pytest.MonkeyPatch) -> None:
    asked = Database.ask

    def ask(db: Database, query: object, **more: Any) -> Answer:
        if not any(db.engine.exact_sums(db.bind(query).sums)):
            raise Refused("nobody is there")
        return asked(db, query, **more)

    patch.setattr(Database, "ask", ask)


def size_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Database, "size", property(lambda db: db.engine.size()))


def quote_knows_rows(patch: pytest.MonkeyPatch) -> None:
    told = Quote.__repr__
    patch.setattr(Quote, "__repr__", lambda one: f"{told(one)} of {TABLE[-1].engine.size()}")


def sums_are_logged(patch: pytest.MonkeyPatch) -> None:
    finish = NoisySums.finish

    def said(one: NoisySums, sums: list[int], noise: Any) -> list[int]:
        import logging

        logging.getLogger("sulq").warning("sums %s", sums)
        return finish(one, sums, noise)

    patch.setattr(NoisySums, "finish", said)


def no_noise_on_nothing(patch: pytest.MonkeyPatch) -> None:
    finish = NoisySums.finish
    patch.setattr(
        NoisySums,
        "finish",
        lambda one, sums, noise: finish(one, sums, noise if any(sums) else [0] * len(noise)),
    )


def nothing_is_booked(patch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def free(ledger: Ledger, question: Any, digest: Any, noise: Any, *_: Any, **more: Any) -> Any:
        named = {name: more[name] for name in ("analyst", "key") if name in more}
        return charge(ledger, question, digest, noise, {}, Loss.zero(), **named)

    patch.setattr(Ledger, "charge", free)


def keys_are_counted(patch: pytest.MonkeyPatch) -> None:
    shown = UndeclaredKeys._shown

    def counted(one: UndeclaredKeys, batches: Iterator[list[Any]]) -> Any:
        held = list(batches)
        total, found = shown(one, iter(held))
        many = sum(map(len, held))
        return total, [each._replace(key=(f"{each.key[0]} {many}",)) for each in found]

    patch.setattr(UndeclaredKeys, "_shown", counted)


TABLE: list[Database] = []
"""Those that were opened, for faults that want to know rows."""
QUICK: dict[Patch, tuple[str, Relation]] = {
    lifted_twice: ("ask", REPLACE),
    half_price: ("ask", REPLACE),
    little_noise: ("ask", ADDED),
    little_choice: ("top", REPLACE),
    note_counts_rows: ("ask", ADDED),
    refused_without_rows: ("ask", REPLACE),
    size_is_told: ("ask", ADDED),
    quote_knows_rows: ("ask", ADDED),
    sums_are_logged: ("ask", REPLACE),
    no_noise_on_nothing: ("ask", REPLACE),
    nothing_is_booked: ("ask", REPLACE),
    keys_are_counted: ("keys", REPLACE),
}


@pytest.mark.parametrize("fault", QUICK, ids=lambda fault: fault.__name__)
def test_a_fault_planted_at_run_time_is_found(fault: Patch, monkeypatch: Any) -> None:
    path, relation = QUICK[fault]
    begin = Database.__init__

    def noted(db: Database, *given: Any, **named: Any) -> None:
        begin(db, *given, **named)
        TABLE[:] = [db]

    monkeypatch.setattr(Database, "__init__", noted)
    fault(monkeypatch)
    with pytest.raises(Divergence):
        for seed in (7, 34, *range(60)):  # nearly all are found at once
            if path == "keys":
                by_keys(seed, 1)
            else:
                by_path(path, seed, 1, relation)


def test_there_are_a_dozen_and_fifty() -> None:
    assert len(QUICK) == 12
    assert len({fault["name"] for fault in FAULTS}) == len(FAULTS) >= 50


def place_of(fault: dict[str, str]) -> str:
    """The one file that has the line."""
    source = ROOT / "src" / "sulq"
    held = [path for path in source.rglob("*.py") if fault["old"] in path.read_text("utf-8")]
    assert len(held) == 1, f"{fault['name']}: in {len(held)} files"
    return str(held[0].relative_to(source))


def broken(fault: dict[str, str]) -> dict[str, str]:
    """What to break, where, and the test that has to fail."""
    file, test = place_of(fault), fault["test"]
    whole = (ROOT / "src" / "sulq" / file).read_text("utf-8")
    assert whole.count(fault["old"]) == 1, fault["name"]
    assert fault["new"] != fault["old"], fault["name"]
    ast.parse(whole.replace(fault["old"], fault["new"]))
    if "/" not in test:
        test = f"replay/test_replay.py::test_neighbours_look_alike[{test}]"
    assert (ROOT / "tests" / test.partition("::")[0]).is_file(), fault["name"]
    return {"file": file, "old": fault["old"], "new": fault["new"], "test": test}


def planted(faults: list[dict[str, str]], copy: Path) -> Iterator[tuple[int, str]]:
    """How each named test ends on a copy with the fault; one process imports and forks."""
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    given = [broken(fault) for fault in faults]
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "house" / "planted.py"), str(copy)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        run.stdin.write(json.dumps(given))
        run.stdin.close()
        try:
            for line in run.stdout:
                code, said = json.loads(line)
                yield code, said
        finally:
            run.terminate()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["name"])
def test_a_fault_is_one_line_of_the_product(fault: dict[str, str]) -> None:
    """Without this a fault whose line was rewritten would never be planted again."""
    broken(fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["name"])
def test_a_fault_planted_in_a_copy_is_found(fault: dict[str, str], tmp_path: Path) -> None:
    ((code, said),) = planted([fault], tmp_path / "src")
    assert code == FAILED, said[-2000:]
