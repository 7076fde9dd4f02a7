"""How soon entries follow their digests, and how long a switch that rested takes, on this machine."""
