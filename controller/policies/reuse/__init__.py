"""The default policy: a learned value of reuse."""
