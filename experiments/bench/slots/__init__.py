"""How much of a pool can be used whose blocks differ in length, after a long time."""
