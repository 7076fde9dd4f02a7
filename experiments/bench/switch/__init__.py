"""Packets per second of the switch: the embedded switch, BMv2 and a bare echo, in one run."""
