"""Python programs started by fork from a process that has already imported them.

An emulation runs one interpreter per host and switch. All would make the same imports, which take most of the
CPU time at the start, and fill memory with the same pages. `ForkServer` starts them from one process
(`server`) that does nothing else, and returns objects with the methods of `subprocess.Popen`.
"""

from topologies.forkserver.client import ForkServer

__all__ = ["ForkServer"]
