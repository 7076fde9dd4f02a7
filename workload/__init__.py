"""What is asked of the system: traces, generators, block keys, costs and the scale model. Imports no other
room."""
