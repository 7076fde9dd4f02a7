"""Workload: traces, generators, block keys, costs and the scale model. Imports no other folder."""
