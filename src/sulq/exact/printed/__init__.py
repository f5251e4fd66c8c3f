"""Duan's printed theorems and checks, for comparison with what is certified."""
