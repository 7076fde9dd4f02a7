"""Networks of inference nodes, storage nodes and P4 switches: graphs, and Mininet networks made from them."""
