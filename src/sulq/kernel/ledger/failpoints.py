"""Named moments between which a crash may fall. Only tests set `on_step`, to kill there."""

from __future__ import annotations

from collections.abc import Callable

on_step: Callable[[str], None] | None = None
"""Told the name of each step when it is reached; None in production."""


def reached(step: str) -> None:
    """Tell a test, if there is one, that this step was reached."""
    if on_step is not None:
        on_step(step)
