"""Compile bound programs to integer SQL, whatever the engine."""
