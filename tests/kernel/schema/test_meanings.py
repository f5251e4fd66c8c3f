"""Words for people: what columns, values and persons are called. They change nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema
from sulq.kernel.schema.study import schema_from_json
from sulq.policy import read_policy
from sulq.policy.files import policy_text
from sulq.policy.tables import TablePolicy

PLAIN = Schema(Number("stay", 0, 60, step=1), Category("dx", ["I21", "C50"]), Flag("smoker"))
MEANT = Schema(
    Number("stay", 0, 60, step=1, about="length of stay", measured_in="days"),
    Category("dx", ["I21", "C50"], about="main diagnosis", labels={"I21": "infarction"}),
    Flag("smoker", about="smokes daily"),
    person_word="patient",
)


def test_words_are_no_part_of_what_is_compared_hashed_or_published() -> None:
    assert MEANT == PLAIN and hash(MEANT["stay"]) == hash(PLAIN["stay"])
    assert MEANT.to_json() == PLAIN.to_json()
    assert repr(MEANT["dx"]) == repr(PLAIN["dx"])


def test_a_published_table_is_opened_with_other_words_and_asks_the_same(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_text("stay,dx,smoker\n" + "3,I21,true\n" * 200)
    ledger, promise = tmp_path / "l", Promise(1, "1e-6", credits=50)
    sql = "SELECT dx, AVG(stay) AS m, COUNT(*) AS n FROM t GROUP BY dx"
    with Database.open(source, PLAIN, promise, ledger, name="t", publish=True) as db:
        before = db.quote_sql(sql)
        told = db.sql(sql)
    with Database.open(source, MEANT, promise, ledger, name="t") as db:
        after = db.quote_sql(sql)
        assert after.credits == 0 and before.credits > 0
        assert db.sql(sql).records() == told.records()
        assert db.schema.who == "patients"


def test_words_are_written_into_the_policy_and_read_back(tmp_path: Path) -> None:
    table = TablePolicy.of("t", "t.csv", "t.ledger", MEANT, Promise(1))
    path = tmp_path / "sulq.toml"
    path.write_text(policy_text(table, {}))
    read = read_policy(path)["t"].schema()
    assert read.meanings() == MEANT.meanings() and read.each == "patient"
    assert read["dx"].said("I21") == "I21: infarction"  # type: ignore[union-attr]


def test_words_go_over_the_wire() -> None:
    sent = schema_from_json(MEANT.to_json()).with_meanings(MEANT.meanings())
    assert sent.meanings() == MEANT.meanings() and sent.who == "patients"
    codes = Schema(Category("code", [1, 2], labels={1: "yes"}), person_word=["child", "children"])
    back = schema_from_json(codes.to_json()).with_meanings(codes.meanings())
    assert back["code"].said(1) == "1: yes" and back.who == "children"  # type: ignore[union-attr]
    assert PLAIN.meanings() == {} and PLAIN.who == "rows"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Number("a", 0, 1, about="two\nlines"),
        lambda: Number("a", 0, 1, measured_in="x" * 41),
        lambda: Flag("a", about="\x1b[31m"),
        lambda: Category("a", ["x"], labels={"y": "unknown"}),
        lambda: Category("a", ["x"], labels=["x"]),  # type: ignore[arg-type]
        lambda: Schema(Flag("a"), person_word=("one",)),
        lambda: Schema(Flag("a"), person_word=7),  # type: ignore[arg-type]
    ],
)
def test_words_are_one_short_line(wrong: object) -> None:
    with pytest.raises(InvalidQuery):
        wrong()  # type: ignore[operator]
