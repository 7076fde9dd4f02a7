"""weir-kv-conformance: tells whether an engine answers with a KV connector as it does without one.

It runs on a CPU, in vLLM's environment, with models of random weights (docs/kv-conformance.md).
"""
