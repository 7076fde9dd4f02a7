"""Experiment on the worth of merging and pools if many readers need the same blocks: a table of claims."""
