"""Replays of traces through the whole hierarchy: GPU memory, DRAM, pool, remote DRAM, SSD, recompute."""
