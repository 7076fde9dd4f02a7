"""Comparison of compressing and blending, by size of the pool."""
