"""Networks of inference nodes, storage nodes and P4 switches: graphs first, Mininet started from them."""
