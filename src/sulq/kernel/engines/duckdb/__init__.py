"""Exact sums over files and frames, in DuckDB."""
