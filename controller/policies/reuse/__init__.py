"""The default policy: a learned reuse value, and experts that check it."""
