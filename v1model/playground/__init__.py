"""Playground in a browser: a P4 program, its entries, packets, and each packet's way through it."""
