"""Dashboard of a running network in the terminal: load of links, sources of blocks, decisions of the pool.

`Dashboard` takes the samples of a run's timeline, which details.json also has, and the reports of processes.
It keeps only the last seconds, to draw them.
"""

from experiments.live.dashboard import Dashboard

__all__ = ["Dashboard"]
