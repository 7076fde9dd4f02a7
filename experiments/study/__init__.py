"""When does the pool pay? Sweeps, a search for the break-even, and a report."""
