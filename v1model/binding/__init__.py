"""The shared object of a compiled program, and the control interface in parts: one module for each
kind of state."""
