"""Charts of fitted learners."""
