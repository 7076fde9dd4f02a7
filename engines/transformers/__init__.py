"""Hugging Face transformers: see `engines.transformers.cache`."""
