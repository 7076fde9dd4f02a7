"""Mutation testing of the code that keeps docs/guarantees.md: the share that tests notice (`make mutate`)."""
