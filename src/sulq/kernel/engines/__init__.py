"""Where rows live: exact integer sums over a table, and nothing else that reads it."""

from sulq.kernel.engines.engine import Engine, open_engine

__all__ = ["Engine", "open_engine"]
