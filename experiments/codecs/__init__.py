"""When compressing blocks is worth more than a larger pool."""
