"""Tools for reading what Weir writes: `weir.results` loads experiments' results, `weir.logs` the logs.

`weir.logs` is also how all processes log; it needs the standard library only. All other code is in folders of
its own (docs/architecture.md).
"""
