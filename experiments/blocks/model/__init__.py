"""The transformer whose KV is measured: any Hugging Face causal model's folder, or a small one made here."""
