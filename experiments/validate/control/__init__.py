"""Measurement on this machine: delay from digests to their entries, and of packets
through a rested switch."""
