"""Compute the cells of a result from released answers."""
