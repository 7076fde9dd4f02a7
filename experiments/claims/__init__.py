"""What merging and pools are worth where many readers need the same blocks: one table of claims."""
