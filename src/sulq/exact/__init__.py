"""Certified exact release: sums without noise where the rows' own uncertainty hides each row."""

from __future__ import annotations

from sulq.exact.domain import Assumptions

__all__ = ["Assumptions"]
