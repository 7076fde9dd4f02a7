"""Machine that an emulation runs on: a layer around the simulation's parts, which don't know of it.

Each class here puts one of theirs on cores, timers and buffers. simulator.system uses these classes if a
scenario has a `[machine]`.
"""
