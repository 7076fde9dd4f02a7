"""Transformer whose KV is measured: any Hugging Face causal model's folder, or a small model trained here."""
