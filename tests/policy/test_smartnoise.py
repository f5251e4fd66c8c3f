"""SmartNoise metadata: the same facts in a policy, and nothing read as code."""

from __future__ import annotations

import pytest

from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import Flag, Number
from sulq.policy.files import policy_text
from sulq.policy.smartnoise import read_smartnoise

PUMS = """
'':
  PUMS:
    PUMS:
      max_ids: 3
      rows: 1000
      censor_dims: true
      pid: {type: int, private_id: True}
      age: {type: int, lower: 0, upper: 100}
      income: {type: float, lower: 0.5, upper: 500000, missing_value: 0}
      sex: {type: string, cardinality: 2}
      married: {type: boolean}
"""


def read(tmp_path, text, **more):
    path = tmp_path / "meta.yaml"
    path.write_text(text, "utf-8")
    return read_smartnoise(path, "pums.csv", "pums.ledger", **more)


def test_facts_are_carried_over(tmp_path):
    table, notes = read(tmp_path, PUMS)
    assert (table.name, table.unit, table.max_rows) == ("PUMS", "pid", 3)
    assert table.promise.neighbours == "add-remove"
    by_name = {column.name: column for column in table.columns}
    assert by_name["age"].column() == Number("age", 0, 100, 1)
    assert by_name["income"].column() == Number("income", 0.5, 500000)
    assert by_name["married"].column() == Flag("married")
    assert table.unready == {"sex": by_name["sex"].lacks}
    assert "not replaced" in notes["income"]
    assert "pid" not in by_name
    assert 'unit = {column = "pid", max_rows = 3}' in policy_text(table, notes)


def test_row_privacy_protects_rows(tmp_path):
    text = PUMS.replace("max_ids: 3", "row_privacy: True")
    assert read(tmp_path, text)[0].unit == "row"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "must be a mapping"),
        ("a: {b: {c: 1}}", "must be a mapping"),
        ("a: : b", "not valid YAML"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML"),
        (PUMS.replace("type: boolean", "type: blob"), "type must be"),
        (PUMS.replace("type: boolean", "type: boolean, colour: red"), "unknown \\['colour'\\]"),
        (PUMS.replace("max_ids: 3", "max_ids: 0"), "max_ids must be"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, said):
    with pytest.raises(InvalidQuery, match=said):
        read(tmp_path, text)


def test_one_of_several_tables_is_named(tmp_path):
    text = PUMS + "    OTHER: {x: {type: int}}\n"
    with pytest.raises(InvalidQuery, match="say which"):
        read(tmp_path, text)
    assert read(tmp_path, text, table="OTHER")[0].unready
    with pytest.raises(InvalidQuery, match="no table"):
        read(tmp_path, text, table="THIRD")
    with pytest.raises(InvalidQuery, match="cannot be read"):
        read_smartnoise(tmp_path / "none.yaml", "a", "b")
