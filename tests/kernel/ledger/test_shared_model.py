"""Every interleaving of two replicas, crashes, lost commits and restored backups, in a model.

The protocol keeps its invariants in every reachable state, and from each there is a way on to the
end. Each rule is needed: without it the checker finds what goes wrong, and by which steps.
"""

from __future__ import annotations

import pytest
from tests.kernel.ledger.shared_model import Bounds, Broken, Model, Rules, explore

ONE_QUESTION = (("a",), ("a",))
TWO = (("a",), ("b",))

SOUND = {
    "two questions, credits for one": Bounds(cap=1),
    "one question asked twice": Bounds(cap=1, wanted=ONE_QUESTION, crashes=2),
    "a backup that all have seen more than": Bounds(
        cap=1, wanted=ONE_QUESTION, losses=0, restores=1, seen=True
    ),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SOUND)
def test_released_is_charged_is_within_the_cap_and_one_value_each(name):
    found = explore(Model(SOUND[name]))
    assert found.states > 5_000
    assert found.finished > 0
    assert found.stuck == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(cap=2),
        Bounds(cap=1, wanted=ONE_QUESTION, crashes=2, losses=2),
        Bounds(cap=1, wanted=(*TWO, ("a",)), crashes=0, losses=0),
    ],
)
def test_it_holds_with_more_of_everything(bounds):
    found = explore(Model(bounds))
    assert found.finished > 0
    assert found.stuck == 0


@pytest.mark.slow
def test_whatever_backup_is_restored_no_replica_forgets_what_it_told():
    """One that has not seen more than the backup goes on: nothing in its reach says otherwise."""
    found = explore(Model(Bounds(cap=1, wanted=TWO, losses=0, restores=1)), everywhere=False)
    assert found.finished > 0
    assert found.stuck == 0


def test_an_unseen_backup_can_undo_spending_for_who_saw_less():
    """The limit of any mark: why every replica looks by itself every few seconds."""
    with pytest.raises(Broken, match="two values of one question"):
        explore(Model(Bounds(cap=1, wanted=ONE_QUESTION, crashes=0, losses=0, restores=1)))


NEEDED = [
    ({"lock": False, "numbers": False}, Bounds(cap=1), "more is charged than the cap"),
    ({"look": False, "numbers": False}, Bounds(cap=1), "more is charged than the cap"),
    ({"once": False}, Bounds(cap=1, wanted=ONE_QUESTION), "told that is not stored"),
    ({"doubt": False}, Bounds(cap=1, wanted=ONE_QUESTION), "told that is not stored"),
    ({"mark": False}, Bounds(cap=1, wanted=TWO, losses=0, restores=1), "told before"),
    ({"anchor": False}, Bounds(cap=1, wanted=TWO, losses=0, restores=1), "told before"),
]


@pytest.mark.parametrize(("without", "bounds", "found"), NEEDED)
def test_each_rule_is_needed(without, bounds, found):
    with pytest.raises(Broken, match=found):
        explore(Model(bounds, Rules(**without)), everywhere=not bounds.restores)


def test_numbers_alone_keep_order_should_the_lock_fail():
    """Two who write at once cannot both take one number: the second is rolled back."""
    bounds = Bounds(cap=1, wanted=ONE_QUESTION, crashes=0)
    assert explore(Model(bounds, Rules(lock=False))).stuck == 0
