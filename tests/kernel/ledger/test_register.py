from __future__ import annotations

import pytest
from tests.kernel.ledger.publishing import ask, publish

from sulq.errors import Refused
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.register import fingerprint_cache, store_fingerprint


def test_the_same_data_has_one_ledger(place, tmp_path):
    publish(place, fingerprint="f").close()
    second = tmp_path / "second.ledger"
    with pytest.raises(Refused, match="registered with another ledger"):
        publish(second, fingerprint="f")
    assert not second.exists()
    publish(place, fingerprint="f").close()


def test_an_existing_ledger_cannot_take_data_of_another(place, tmp_path):
    publish(place, fingerprint="f").close()
    other = tmp_path / "other.ledger"
    publish(other, fingerprint="g").close()
    with pytest.raises(Refused, match="registered with another"):
        publish(other, fingerprint="f", name="copy")


def test_one_ledger_does_not_publish_the_same_data_twice(place):
    journal = publish(place, fingerprint="f")
    with pytest.raises(Refused, match="another table"):
        publish(place, fingerprint="f", name="again")
    ask(journal, "q")
    assert list(inspect(place).statements) == ["people"]


def test_registered_data_is_refused_in_memory(place):
    publish(place, fingerprint="f").close()
    with pytest.raises(Refused, match="registered"):
        publish(":memory:", fingerprint="f")
    publish(":memory:", fingerprint="g")
    publish(":memory:", fingerprint="g")


@pytest.mark.parametrize(("first", "then"), [("f", "g"), ("f", None), (None, "f")])
def test_a_table_keeps_its_data(place, first, then):
    publish(place, fingerprint=first).close()
    with pytest.raises(Refused, match="content has changed"):
        publish(place, fingerprint=then)
    publish(place, fingerprint=first).close()


def test_moving_the_ledger_keeps_everything(path, tmp_path):
    journal = publish(path, fingerprint="f")
    ask(journal, "q")
    journal.close()
    moved = path.rename(tmp_path / "moved.ledger")
    assert ask(publish(moved, fingerprint="f"), "q").charged == {}


def test_fingerprints_are_remembered_by_size_and_time(path, state):
    assert fingerprint_cache(path, 10, 20) is None
    store_fingerprint(path, 10, 20, "f")
    assert fingerprint_cache(path, 10, 20) == "f"
    assert fingerprint_cache(path, 11, 20) is None
    assert fingerprint_cache(path, 10, 21) is None
    store_fingerprint(path, 11, 21, "g")
    assert fingerprint_cache(path, 11, 21) == "g"
    next((state / "cache").iterdir()).write_bytes(b"{")
    assert fingerprint_cache(path, 11, 21) is None
