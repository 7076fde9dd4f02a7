"""Benchmark of the two hosts at a block's ends: CPU time and latency."""
