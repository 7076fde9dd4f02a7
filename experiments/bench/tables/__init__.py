"""Benchmark of large tables, in the embedded switch alone and beside BMv2 (`make bench WHAT=tables`)."""
