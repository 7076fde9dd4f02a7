"""How large an emulation can be on this machine, and where its CPU time goes (`make bench
WHAT=emulation`)."""
