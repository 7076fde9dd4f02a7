"""vLLM's KV connector: see `engines.vllm.connector`."""
