"""Validation of the simulator, against the packet-level emulation and against published figures."""
