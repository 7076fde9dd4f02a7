"""A discrete-event simulator of the system at real scale: policies, costs and keys are the live one's."""
