"""Does a pool make the choice of the node unimportant? Schedulers with and without one, simulated."""
