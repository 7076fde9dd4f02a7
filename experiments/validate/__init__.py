"""Is the simulator to be believed? Against the packet-level emulation, and against published figures."""
