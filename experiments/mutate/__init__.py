"""How much of what could be wrong in the code that keeps the promises its tests notice (`make mutate`)."""
