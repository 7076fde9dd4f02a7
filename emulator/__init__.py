"""What makes hosts, switches and controller play a scenario on this machine, and what is recorded of it."""
