"""Weir for those who read its results: `weir.results` loads what experiments wrote.

Everything else lives in rooms of its own (docs/architecture.md).
"""
