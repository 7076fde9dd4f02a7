"""Benchmark of the emulation: its largest load on this machine, and its CPU time (`make bench
WHAT=emulation`)."""
