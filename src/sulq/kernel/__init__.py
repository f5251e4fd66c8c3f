"""The trusted base: everything the privacy argument rests on, and nothing else."""
