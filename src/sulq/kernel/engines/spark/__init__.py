"""Exact sums over one table, added up on Spark's executors."""
