"""Beluga's guidelines for load and store, measured through segments on a network of the emulator."""
