"""Benchmarks: `make bench WHAT=...` runs one of them."""
