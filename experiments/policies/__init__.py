"""Replays of traces through every policy at several pool sizes, which show what each policy saves."""
