"""Experiment on incast: many nodes ask one storage node for the same blocks at once (`make incast`)."""
