"""A running network in the terminal: load of the links, where blocks come from, what the pool decides.

`Dashboard` takes the samples of a run's timeline (those of details.json) and what processes say of
themselves; of its own it keeps the last seconds, to draw them.
"""

from experiments.live.dashboard import Dashboard

__all__ = ["Dashboard"]
