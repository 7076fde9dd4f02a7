"""The machine that an emulation runs on, as a layer around the parts of the simulation, which don't know it.

Each class here is one of theirs on cores, timers and buffers; simulator.system takes these where
a scenario has a `[machine]`.
"""
