"""Python programs started by fork from a process that has imported them already.

An emulation runs an interpreter a host and a switch: a hundred times the same imports, which take more CPU
time than all else at its start, and the same pages of memory. `ForkServer` starts them from one process
(`server`), which does nothing else; it hands out objects with what `subprocess.Popen` has.
"""

from topologies.forkserver.client import ForkServer

__all__ = ["ForkServer"]
