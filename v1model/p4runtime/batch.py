"""Progress of a Write: its updates, their results, and the position."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.dataplane import DataPlaneError
    from v1model.protos.p4.v1 import p4runtime_pb2


class Batch:
    """Write in progress; `results` has one for each update that is done, None for success."""

    def __init__(self, request: p4runtime_pb2.WriteRequest) -> None:
        self.updates = request.updates
        # Serialized in protobuf's order of fields, whatever order they came in: the data plane's writer reads
        # this.
        self.serialized = request.SerializeToString()
        self.cursor = 0  # in `serialized`, after the last update that is done
        self.results: list[DataPlaneError | None] = []

    def is_done(self) -> bool:
        return len(self.results) == len(self.updates)
