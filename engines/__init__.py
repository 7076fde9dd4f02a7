"""Inference engines that keep their KV cache in the pool, each through its own interface."""
