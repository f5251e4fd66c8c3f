"""`sulq sandbox`: nothing of the real table is needed or touched."""

from __future__ import annotations

from pathlib import Path


def test_a_notebook_can_be_written_for_nothing(sulq):
    Path("people.parquet").unlink()
    reply = sulq("sandbox", "--rows", "500")
    assert reply.code == 0
    assert "sandbox/sulq.toml" in reply.out
    found = sulq("ask", "count", "--where", "smoker", "--policy", "sandbox/sulq.toml", "--json")
    assert found.code == 0
    assert not Path("people.ledger").exists()
    again = sulq("sandbox")
    assert again.code == 2
    assert "exists" in again.err


def test_json_names_the_policy(sulq):
    made = sulq("sandbox", "--json", "-d", "try").json
    assert Path(made["policy"]).exists()


def test_init_takes_smartnoise_metadata(sulq):
    Path("meta.yaml").write_text(
        "a: {b: {folk: {age: {type: int, lower: 0, upper: 110}}}}", "utf-8"
    )
    reply = sulq("init", "people.parquet", "--smartnoise", "meta.yaml", "-o", "folk.toml")
    assert reply.code == 0
    assert sulq("ask", "folk", "mean", "age", "--policy", "folk.toml").code == 0
    both = sulq(
        "init", "people.parquet", "--smartnoise", "meta.yaml", "--from-data", "-o", "x.toml"
    )
    assert both.code == 2
