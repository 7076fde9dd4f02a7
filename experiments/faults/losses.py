"""Losses on request, through the table of p4/include/faults.p4.

The table is written in a P4Runtime role of its own, so that the controller stays the primary of its role.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from controller.p4runtime.p4info import Program, canonical, load_p4info
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

ROLE = "faults"
TIMEOUT_S = 30.0
SHARE_UNITS = 1 << 16


@contextmanager
def losing(address: str, device_id: int, p4info: Path, share: float) -> Iterator[None]:
    """Lose a share of the protocol's packets that enter a switch during the `with` block.

    Raises grpc.RpcError.
    """
    program = Program(load_p4info(p4info))
    entry = p4runtime_pb2.TableEntry(table_id=program.table_id("ingress.injected.losses"), priority=1)
    # The entry matches all packets, because the number of every operation is below 128.
    entry.match.add(field_id=2).ternary.value = canonical(0)
    entry.match[0].ternary.mask = canonical(0x80)
    (action,) = [a for a in program.p4info.actions if a.preamble.name == "ingress.injected.lose"]
    entry.action.action.action_id = action.preamble.id
    entry.action.action.params.add(param_id=1, value=canonical(round(share * SHARE_UNITS)))
    with grpc.insecure_channel(address) as channel:
        stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        stream = stub.StreamChannel(iter(requests.get, None))
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = device_id
        request.arbitration.election_id.low = 1
        request.arbitration.role.name = ROLE
        requests.put(request)
        next(stream)
        try:
            _write(stub, device_id, "INSERT", entry)
            yield
            _write(stub, device_id, "DELETE", entry)
        finally:
            requests.put(None)
            stream.cancel()


def _write(stub: Any, device_id: int, kind: str, entry: Any) -> None:
    update = p4runtime_pb2.Update(type=kind, entity=p4runtime_pb2.Entity(table_entry=entry))
    request = p4runtime_pb2.WriteRequest(device_id=device_id, role=ROLE, updates=[update])
    request.election_id.low = 1
    stub.Write(request, timeout=TIMEOUT_S)
