"""SGLang's hierarchical cache: see `engines.sglang.hicache`."""
