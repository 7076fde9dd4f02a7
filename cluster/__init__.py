"""Networks over several servers: a part of the fabric on each, tunnels between them, one run over all.

On every server runs one agent (`cluster.agent`), at the other end of one SSH connection. It builds its part
of the fabric as `topologies.network` builds a whole one, and starts what it is told. When its connection
ends, for whatever reason, it removes all that it made.
"""
