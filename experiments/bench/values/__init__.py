"""Benchmark of the CPU time of a byte by the size of values (`make bench WHAT=values`)."""
