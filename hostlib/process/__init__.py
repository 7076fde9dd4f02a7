"""Configuration, control and monitoring of a host process."""
