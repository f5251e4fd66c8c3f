"""Certified exact release: sums without noise where the rows' own uncertainty hides each row."""
