"""Simulations of traces in the whole hierarchy: GPU memory, DRAM, pool, remote DRAM, SSD, recomputing."""
