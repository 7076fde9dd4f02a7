"""Survey of what the compiler makes of every v1model program below a folder."""
