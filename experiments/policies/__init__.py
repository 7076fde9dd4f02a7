"""Replays of traces through every policy at several pool sizes: what each earns, and what it costs."""
