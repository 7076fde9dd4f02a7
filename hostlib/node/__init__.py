"""The emulated inference node: a worker that plays its share of a trace."""
