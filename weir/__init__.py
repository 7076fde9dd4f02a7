"""Weir for those who read its results: `weir.results` loads what experiments wrote. `weir.logs`, which needs
nothing else, is how all processes log.

Everything else lives in rooms of its own (docs/architecture.md).
"""
