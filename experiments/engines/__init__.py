"""make engines: vLLM on a Mininet star, its KV cache recomputed, in storage nodes, in the pool, in rivals."""
