"""What faults cost those who use the network while they happen (`make faults`, `make intruders`)."""
