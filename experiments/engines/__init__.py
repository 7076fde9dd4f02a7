"""make engines: run vLLM on a Mininet star, with KV cache from storage nodes, the pool, or other systems."""
