"""Benchmark of packets per second: the embedded switch, BMv2 and a bare echo, in one run."""
