"""Experiment on codecs and chunk reuse with the KV of a real transformer. See docs/blocks.md."""
