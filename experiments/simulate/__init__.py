"""`python -m experiments.simulate`: simulate scenarios from TOML files."""
