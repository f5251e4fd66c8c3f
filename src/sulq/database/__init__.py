"""The steps of an answer, in order: noisy (`database`) and exact (`exactly`)."""

from __future__ import annotations

from sulq.database.database import Analyst, Database

__all__ = ["Analyst", "Database"]
