"""What compressing and blending are worth, by size of the pool."""
