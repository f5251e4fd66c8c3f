"""Peers side by side: each in its own environment and processes, on the same file and questions."""
