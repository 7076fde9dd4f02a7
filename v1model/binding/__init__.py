"""Binding to the shared object of a compiled program: the control interface, one module for each kind of
state.
"""
