"""The controller's side of P4Runtime: session, client, P4Info, adapter."""
