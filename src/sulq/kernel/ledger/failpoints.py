"""Named moments between which a crash may fall. Only tests set `on_step`, to kill there."""

from __future__ import annotations

from collections.abc import Callable


def _carry_on(step: str) -> None:
    """What production does at every step: nothing."""


on_step: Callable[[str], None] = _carry_on
