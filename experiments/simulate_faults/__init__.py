"""A whole system in one process and in virtual time, with random faults: what was promised is checked.

The hosts, the controller and the pipeline are the real ones. Time, the network between them, the disks and
gRPC's transport are simulated (docs/guarantees.md, "Simulated faults").
"""
