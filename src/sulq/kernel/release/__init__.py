"""The release of answers: what stands between a computed answer and its reader."""
