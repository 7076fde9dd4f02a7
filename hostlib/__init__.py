"""Programs of hosts: the wire protocol, the client, the storage node and the inference worker.

Import from the modules: this file stays empty so that the wire format can be used without opening sockets or
databases.
"""
