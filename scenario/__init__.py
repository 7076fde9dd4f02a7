"""Scenario: everything that a run of the emulator or of the simulator depends on.

One file describes it for both; docs/reference.md has all keys. `load_scenario` reads a file.
"""

from scenario.reading import load_scenario
from scenario.whole import GB, GBIT_BYTES, Scenario

__all__ = ["GB", "GBIT_BYTES", "Scenario", "load_scenario"]
