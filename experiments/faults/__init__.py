"""Experiments on faults and attacks while nodes work (`make faults`, `make soak`, `make intruders`)."""
