"""CPU time from a digest to the entry that it leads to, in controller and switch (`make bench
WHAT=control`)."""
