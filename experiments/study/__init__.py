"""When does the pool pay? Sweeps, a map, and a report."""
