"""What an owner is told before a table is published, and that nobody else can be."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sulq.kernel.ledger.state_dir import private_path
from sulq.kernel.schema.promise import Promise
from sulq.policy import TablePolicy, read_policy
from sulq.policy.advice import Advice, advise, band

ROWS = 3_000
POLICY = """
[visits]
source = "visits.csv"
ledger = "v.ledger"
promise = {epsilon = 1, delta = 1e-6, queries = 100}
columns.PatientId = {number = [0, 1000000], step = 1}
columns.weight = {number = [0, 300]}
columns.seen = {number = [2000-01-01, 2030-01-01]}
columns.sex = {category = ["female", "male"]}
columns.ward = {category = ["A", "B", "Z"], public = true}
columns.smoker = {flag = true, public = true}
columns.age = {number = [18, 87], step = 1}
columns.height = {number = [0, 250]}
columns.remark = {text = true}
columns.open = {number = ["?", "?"]}

[labs]
source = "labs.csv"
ledger = "l.ledger"
promise = {epsilon = 2, delta = 1e-6, queries = 1000}
unit = {column = "patient_nbr", max_rows = 4}
columns.value = {number = [0, 100], step = 1}
"""


@pytest.fixture
def awkward(tmp_path: Path) -> Path:
    """Two files about the same people: ids, decimal commas, ?, several rows for a person."""
    draw = random.Random(1)
    lines = ["PatientId;weight;seen;sex;ward;smoker;age;height;remark;open;secret"]
    for i in range(ROWS):
        person = i if i < 70 else draw.randrange(900)
        lines.append(
            f"{90_000 + 7 * person};{40 + i % 80},5;{1 + i % 28:02}.05.2016;{'FM'[i % 2]};"
            f"{'Z' if i < 4 else draw.choice('AB')};{draw.choice(['yes', 'no', '?', '?'])};"
            f"{18 + person % 70};{300 if i % 50 == 0 else 150 + i % 40};text {i};1;s"
        )
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    labs = [f"{90_000 + 7 * (i % 500 if i < 800 else 3)},{i % 97}" for i in range(1_000)]
    (tmp_path / "labs.csv").write_text("patient_nbr,value\n" + "\n".join(labs) + "\n")
    (tmp_path / "sulq.toml").write_text(POLICY)
    return tmp_path


def table(home: Path, name: str = "visits", *changes: tuple[str, str]) -> TablePolicy:
    text = POLICY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (home / "sulq.toml").write_text(text)
    return read_policy(home / "sulq.toml")[name]


def column(found: Advice, name: str) -> Any:
    return next(one for one in found.columns if one.name == name)


def test_every_mistake_of_an_awkward_table_is_named(awkward: Path) -> None:
    found = advise(table(awkward))
    marks = {one.name: one.marks for one in found.columns}
    assert marks == {
        "PatientId": ("identifier",),
        "weight": ("unreadable",),
        "seen": ("unreadable",),
        "sex": ("undeclared",),
        "ward": (),
        "smoker": ("unreadable",),
        "age": ("proposed",),
        "height": (),
        "remark": ("identifier",),
        "open": ("open",),
    }
    said = {one.name: " ".join(map(str, one.faults)) for one in found.columns}
    assert "decimal comma, as in 62,5: of a CSV file say csv.decimal" in said["weight"]
    assert "day first, as in 31.05.2016" in said["seen"]
    assert '"F", "female"' in said["sex"]
    assert "such as ? or NA" in said["smoker"]
    assert "almost every value is different" in said["remark"]
    assert not found.ready
    assert found.sentence == "40 % becomes at most 65 %"
    assert found.protected.startswith("one ROW: a person with several rows is not protected")
    assert found.proposals[0].startswith("PatientId repeats, about 3.")
    assert found.hidden == ("secret",)


def test_columns_have_a_count_and_bands_and_no_values(awkward: Path) -> None:
    found = advise(table(awkward))
    height = column(found, "height")
    assert (height.readable, height.readable_band, height.within_band) == (
        ROWS,
        "at least 99 %",
        "90 to 99 %",
    )
    assert [band(k, 1000) for k in (1000, 990, 989, 900, 899, 0)] == [
        "at least 99 %",
        "at least 99 %",
        "90 to 99 %",
        "90 to 99 %",
        "below 90 %",
        "below 90 %",
    ]
    assert band(0, 0) == "no values"
    shown = json.dumps(found.to_json(), default=str)
    for value in ("300.0", "96270", "90000", "text 1", "119"):  # ends and cells of the file
        assert value not in shown.replace('"number 0 to 300"', "")


def test_public_columns_are_read_back_with_their_small_cells(awkward: Path) -> None:
    public = advise(table(awkward)).public
    assert public[0] == "ward: 3 cells, 1 of them with fewer than 10 rows"
    assert public[1] == "smoker: 3 cells"
    assert public[2].startswith("all of them crossed: ")


def test_the_owner_may_overrule_each_verdict_in_the_policy(awkward: Path) -> None:
    fixed = table(
        awkward,
        "visits",
        ("step = 1}\ncolumns.weight", "step = 1, identifier_ok = true}\ncolumns.weight"),
        ("[0, 300]}", "[0, 300], partial = true}"),
        ("2030-01-01]}", "2030-01-01], partial = true}"),
        ('["female", "male"]', '["F", "M"]'),
        ("{flag = true, public = true}", "{flag = true, partial = true, public = true}"),
        ("[18, 87], step = 1}", "[18, 87], step = 1, proposed = false}"),
        ("{text = true}", "{text = true, identifier_ok = true}"),
        ('columns.open = {number = ["?", "?"]}\n', ""),
        ('ledger = "v.ledger"', 'ledger = "v.ledger"\napart = true'),
    )
    assert advise(fixed).faults == ()
    schema = fixed.schema().to_json()
    for word in ("identifier_ok", "partial", "proposed", "apart"):
        assert word not in json.dumps(schema)
    plain = tuple(
        replace(
            one,
            facts={
                k: v
                for k, v in one.facts.items()
                if k not in ("identifier_ok", "partial", "proposed")
            },
        )
        for one in fixed.columns
    )
    assert replace(fixed, columns=plain, apart=False).schema().to_json() == schema


def test_people_in_two_tables_lose_the_sum(awkward: Path) -> None:
    said = advise(table(awkward, "labs")).faults
    assert said == (
        "people in labs and in visits lose epsilon 3 in all: name a population, or if nobody is in"
        " both, write apart = true",
    )
    assert advise(table(awkward, "labs", ('"v.ledger"', '"v.ledger"\napart = true'))).ready
    both = (
        "columns.value",
        'population = {name = "town", epsilon = 2, delta = 1e-6}\ncolumns.value',
    )
    assert advise(table(awkward, "labs", both)).ready
    assert "population town lose epsilon 3" in str(advise(table(awkward, "visits", both)).shared)


def test_persons_are_counted_with_what_each_limit_keeps(awkward: Path) -> None:
    found = advise(table(awkward, "labs"))
    assert found.protected.endswith("of each person at most 4 rows count")
    assert found.kept is not None
    # 500 persons: 300 with two rows, 199 with one, and number 3 with 202
    assert (found.kept.persons, found.kept.rows_per_person) == (500, 2.0)
    assert found.kept.shares[1] == 0.5
    assert found.kept.shares[4] == (500 + 299 + 1 + 2) / 1_000
    assert found.price == 16
    assert found.counts == 1_000 // 16
    assert "rows" not in found.proposals


def test_credits_advised_to_a_small_table_are_priced_by_the_person(tmp_path: Path) -> None:
    """F20: "queries = 64" for persons with 4 rows meant four counts."""
    lines = "\n".join(f"{i % 5_000},{i % 97}" for i in range(20_000))
    (tmp_path / "labs.csv").write_text(f"patient_nbr,value\n{lines}\n")
    (tmp_path / "sulq.toml").write_text(POLICY[POLICY.index("[labs]") :].replace("1000}", "5000}"))
    found = advise(read_policy(tmp_path / "sulq.toml")["labs"])
    assert found.fewer is not None
    assert f"(credits = {found.fewer:,}, which is {found.fewer // 16:,} counts" in found.warnings[0]
    better = replace(found.policy, promise=Promise(2, 1e-6, found.fewer))
    after = advise(better)
    assert after.fewer is None
    assert after.bar <= 0.01 * 5_000  # the bar of a count at its price, of which there are so many
    assert after.counts == found.fewer // 16


def test_bounds_changed_after_a_look_at_the_rows_are_proposed(awkward: Path) -> None:
    first = advise(table(awkward))
    assert column(first, "height").marks == ()
    wider = ("columns.height = {number = [0, 250]", "columns.height = {number = [0, 260]")
    for _ in range(2):  # the mark stays: what was declared first is remembered
        changed = advise(table(awkward, "visits", wider))
        assert column(changed, "height").marks == ("proposed",)
        assert "changed after a check read the rows" in str(column(changed, "height").faults[0])
    said = (wider[0] + "}", wider[1] + ", proposed = false}")
    assert column(advise(table(awkward, "visits", said)), "height").marks == ()
    assert column(advise(table(awkward)), "height").marks == ()  # as it was
    values = ('["A", "B", "Z"]', '["A", "B"]')
    assert column(advise(table(awkward, "visits", values)), "ward").marks == ("proposed",)
    held = "".join(path.read_text() for path in private_path("checks").iterdir())
    assert "90000" not in held  # declarations, no rows


@pytest.mark.parametrize(
    ("bounds", "marked"),
    [
        ("[0, 120]", False),
        ("[18, 120]", False),  # one end, and a round one
        ("[18, 87]", True),
        ("[-400, 87]", False),
        ("[0, 187]", False),
    ],
)
def test_bounds_that_are_the_files_own_ends(awkward: Path, bounds: str, marked: bool) -> None:
    found = advise(table(awkward, "visits", ("[18, 87]", bounds)))
    assert column(found, "age").marks == (("proposed",) if marked else ())


def test_an_end_that_nobody_would_choose_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "labs.csv").write_text("patient_nbr,value\n1,5\n2,18743\n3,9\n")
    text = POLICY[POLICY.index("[labs]") :].replace("[0, 100]", "[0, 18743]")
    (tmp_path / "sulq.toml").write_text(text)
    found = advise(read_policy(tmp_path / "sulq.toml")["labs"])
    assert column(found, "value").marks == ("proposed",)
    assert "18743" not in " ".join(found.faults)


TOWN = 'population = {name = "town", epsilon = 2, delta = 1e-6}\ncolumns'


def test_a_population_is_one_ledger_and_one_promise(awkward: Path) -> None:
    """Named in two ledgers it protects nobody who is in both: each ledger counts for itself."""
    both = [("columns.PatientId", f"{TOWN}.PatientId"), ("columns.value", f"{TOWN}.value")]
    split = advise(table(awkward, "labs", *both))
    assert split.faults == (
        "labs and visits name population town in two ledgers, each counts for itself, and people"
        " in both lose the sum: write the same ledger in both",
    )
    assert split.joint == ""
    one = ('"v.ledger"', '"l.ledger"')
    other = (f"{TOWN}.value", f"{TOWN}.value".replace("epsilon = 2", "epsilon = 3"))
    differs = advise(table(awkward, "labs", *both, one, other))
    assert differs.faults == (
        "labs and visits promise population town different things: write the same population line"
        " in both",
    )
    fine = advise(table(awkward, "labs", *both, one))
    assert fine.ready
    assert fine.joint == "all tables of population town together: epsilon 2"


def test_of_persons_nothing_is_public(awkward: Path) -> None:
    said = ("[0, 100], step = 1}", "[0, 100], step = 1, public = true}")
    found = advise(table(awkward, "labs", said))
    assert found.public == () and not column(found, "value").public
    assert any("public = true of value has no effect" in one for one in found.warnings)
    assert "public = true" not in str(advise(table(awkward, "visits")).warnings)
    once = advise(table(awkward, "labs", ("max_rows = 4", "max_rows = 1")))
    assert once.protected.endswith("of each person at most 1 row counts")
