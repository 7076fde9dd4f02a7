"""Networks over several servers: each carries a part of the fabric, and tunnels join the parts.

On each server runs one agent (`cluster.agent`), at the other end of one SSH connection. It builds its part of
the fabric as `topologies.network` builds a whole one, and starts the processes that the run asks for. When
its connection ends, for whatever reason, it removes all that it made.
"""
