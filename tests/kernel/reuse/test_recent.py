"""What was used last is kept, up to a weight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sulq.kernel.reuse.store import IntMap, WeightedLRU


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 7), st.booleans()), max_size=60))
def test_the_latest_are_kept_up_to_their_weight(steps: list[tuple[int, int, bool]]) -> None:
    kept: WeightedLRU[int, str] = WeightedLRU(12)
    order: list[tuple[int, int]] = []  # the latest last
    for key, weight, write in steps:
        if write:
            kept.put(key, str(key), weight)
            order = [each for each in order if each[0] != key] + [(key, weight)]
            while sum(each[1] for each in order) > 12:
                del order[0]
        else:
            assert kept.get(key) == (str(key) if key in dict(order) else None)
            order.sort(key=lambda each: each[0] == key)  # stable: this one is the latest
        assert [each[0] for each in order if each[0] in kept] == [each[0] for each in order]
        assert len(kept) == len(order)


def test_what_is_too_heavy_is_not_kept_and_nothing_goes_for_it() -> None:
    kept: WeightedLRU[str, int] = WeightedLRU(5)
    kept.put("light", 1, 2)
    assert kept.put("heavy", 2, 6) == 2
    assert kept.get("heavy") is None and kept.get("light") == 1


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 9)), max_size=40),
    st.frozensets(st.integers(0, 45)),
)
def test_a_map_of_numbers_is_a_dict(pairs: list[tuple[int, int]], asked: frozenset[int]) -> None:
    found, plain, mine = IntMap(), dict(pairs), IntMap()
    for key, small in pairs:
        found.put(key, small)
    for key in sorted(asked, reverse=True):
        mine.put(key)
    assert list(found) == sorted(plain) and len(found) == len(plain)
    assert all(found.get(key) == plain.get(key) for key in range(46))
    wanted = sorted({plain[key] for key in asked if key in plain})
    assert found.of(asked).tolist() == found.of(mine).tolist() == wanted
