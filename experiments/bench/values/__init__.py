"""What a byte costs by the size of values."""
