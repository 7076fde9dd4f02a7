"""P4Runtime for a `dataplane.DataPlane`: translation by P4Info, arbitration, gRPC server."""
