"""Figures as ratios to a baseline taken in the same run; `make bench` prints them all."""
