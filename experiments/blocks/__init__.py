"""What is in a block: codecs and chunk reuse, on the KV of a real transformer. See docs/blocks.md."""
