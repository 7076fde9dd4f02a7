"""Nodes that lend one another their memory, the index of who holds what, and the router."""
