"""A Write under way: its updates, what became of each, and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.dataplane import DataPlaneError
    from v1model.protos.p4.v1 import p4runtime_pb2


class Batch:
    """`results`: one for each update that is done, None where all is well."""

    def __init__(self, request: p4runtime_pb2.WriteRequest) -> None:
        self.updates = request.updates
        # In protobuf's order of fields, whatever order they came in: what the data plane's writer reads.
        self.serialized = request.SerializeToString()
        self.cursor = 0  # in `serialized`, behind the last update that is done
        self.results: list[DataPlaneError | None] = []

    def is_done(self) -> bool:
        return len(self.results) == len(self.updates)
