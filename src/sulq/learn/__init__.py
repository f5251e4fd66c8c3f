"""Private learning: every algorithm of the papers, over an Oracle and nothing else."""
