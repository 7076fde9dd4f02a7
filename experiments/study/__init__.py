"""The study that finds where the pool pays: sweeps, a map of settings, and a report."""
