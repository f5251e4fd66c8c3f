"""Exact sums over one table of a PostgreSQL server."""
