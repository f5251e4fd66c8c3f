"""What must not change while the house is redrawn: each record by name, and what is different.

A change that is meant is recorded with `python -m tests.golden`, in a commit of its own, with the
reason.
"""

from __future__ import annotations

import pytest
from tests.golden import inside
from tests.golden.inside import samplers
from tests.golden.making import PARTS, made
from tests.golden.records import HERE, differences, read


@pytest.mark.parametrize("part", PARTS)
def test_nothing_has_changed(part: str) -> None:
    for name, found in made(part).items():
        told = differences(read(name), found)
        shown = "\n".join(told[:10])
        assert not told, f"{len(told)} records of {name}.json are different:\n{shown}"


def test_there_is_enough_of_everything_and_it_stays_small() -> None:
    asked = [name for name in read("questions") if not name.startswith("act ")]
    assert len(asked) >= 60
    assert all(len(held["under"]) == 5 for held in read("questions").values())
    refused = [held for held in read("refusals").values() if isinstance(held, dict)]
    assert len(refused) >= 120
    assert {held["paid"] for held in refused if "paid" in held} == {"0"}
    assert "answered" not in {held["kind"] for held in refused}
    assert len(read("replies")) >= 40
    assert len(read("commands")) >= 30
    assert sum(path.stat().st_size for path in HERE.glob("*.json")) < 2_000_000


def test_every_command_and_option_is_still_taken() -> None:
    now = inside.options()
    gone = {
        name: sorted({*known} - {*now.get(name, ())}) for name, known in read("options").items()
    }
    assert {name: lost for name, lost in gone.items() if lost or name not in now} == {}


def test_silence_leaves_nothing_behind() -> None:
    before = (samplers.draw, samplers.draw_one_sided)
    with inside.quiet():
        assert samplers.draw is not before[0] and samplers.draw_one_sided is not before[1]
    assert (samplers.draw, samplers.draw_one_sided) == before
