"""Engines with a case's program and entries on two veth cables, to measure forwarding and writes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from controller.costs import Costs
from controller.p4runtime.p4info import load_p4info
from controller.p4runtime.p4runtime_client import RPC_TIMEOUT_S, UPDATES_PER_WRITE, SwitchClient
from experiments.bench.switch.cables import Cables
from experiments.bench.switch.control import DEVICE_ID, wait_serving
from experiments.bench.switch.plan import Frame, Plan
from experiments.bench.switch.switch_process import SwitchProcess
from experiments.bench.switch.workloads import Workload
from experiments.bench.tables.cases import PROGRAM, Case
from experiments.bench.tables.entries import FRAME_BYTES, Content
from topologies.engines import Engine
from v1model.compile import compile_p4
from v1model.p4runtime.schema import Schema
from v1model.protos.p4.v1 import p4runtime_pb2

Update = p4runtime_pb2.Update
_PAYLOAD: Final = 42  # after Ethernet, IPv4 and UDP
_WRITE_TIMEOUT_S: Final = RPC_TIMEOUT_S * 6


def workload(case: Case, content: Content) -> Workload:
    """Return the workload that sends the case's frames into the first cable; they leave by the second."""
    frames = [Frame(0, frame) for frame in content.frames]
    plan = Plan(2, frames, _PAYLOAD, reply_bytes=FRAME_BYTES)
    return Workload(case.name, case.title, (0, 1), ("0:1:0",), lambda _: plan)


class Router:
    """Engine with a case's program and entries. Use as a context manager.

    `inserts_per_s` is the rate at which the entries were written when it started. It is a
    `experiments.bench.switch.engines.Contender`.
    """

    def __init__(self, engine: Engine, case: Case, content: Content, directory: Path, cpus: str) -> None:
        self.name = engine.name
        self._engine, self._case, self._content = engine, case, content
        self.directory, self._cpus = directory, cpus
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Router:
        with contextlib.ExitStack() as stack:
            self.cables = stack.enter_context(Cables(2))
            artifacts = self._engine.compile(PROGRAM, self._case.defines, self.directory)
            self._process = SwitchProcess(self._engine, self.cables, self.directory, self._cpus)
            wait_serving(self._process.address, self._process.process, self._process.log_tail)
            client = SwitchClient(DEVICE_ID, self._process.address, (0, 1), _ignore, lambda: None, Costs())
            stack.callback(client.tear_down)
            p4info = load_p4info(artifacts.p4info)
            client.set_pipeline(p4info, artifacts.device_config.read_bytes(), cookie=1)
            self._client, self._entities = client, self._encoded(p4info)
            self.inserts_per_s = self.write(Update.INSERT, UPDATES_PER_WRITE)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _encoded(self, p4info: Any) -> list[p4runtime_pb2.Entity]:
        defines = {name: str(value) for name, value in self._case.defines.items()}
        schema = Schema(p4info, compile_p4(PROGRAM, defines=defines).program)
        return list(_entities(schema, self._content))

    def write(self, kind: Update.Type, batch: int, first: int = 0, count: int | None = None) -> float:
        """Insert or delete entries, `batch` in each Write; returns entries a second.

        Without `count`, all entries from place `first` on are written. The requests are encoded beforehand,
        so that only the switch and gRPC are measured.
        """
        entities = self._entities[first : None if count is None else first + count]
        requests = []
        for start in range(0, len(entities), batch):
            request = p4runtime_pb2.WriteRequest(device_id=DEVICE_ID)
            request.election_id.high, request.election_id.low = self._client.election_id
            chosen = entities[start : start + batch]
            request.updates.extend(Update(type=kind, entity=entity) for entity in chosen)
            requests.append(request)
        began = time.monotonic()
        for request in requests:
            self._client.stub.Write(request, timeout=_WRITE_TIMEOUT_S)
        return len(entities) / (time.monotonic() - began)

    def measure_inserts(self, batch: int, most: int) -> float:
        """Return inserts a second with `batch` entries a Write, measured with the first `most` entries.

        In the end all entries are there.
        """
        self.write(Update.DELETE, UPDATES_PER_WRITE)
        rate = self.write(Update.INSERT, batch, 0, most)
        if most < len(self._entities):
            self.write(Update.INSERT, UPDATES_PER_WRITE, most)
        return rate

    def prepare(self, workload: Workload) -> None:
        """Do nothing: the entries are there."""

    def cpu_s(self) -> float:
        """Return the CPU seconds that its process has used; raises BenchError if it has ended."""
        return self._process.cpu_s()


def _entities(schema: Schema, content: Content) -> Iterator[p4runtime_pb2.Entity]:
    for entry in content.entries:
        entity = p4runtime_pb2.Entity()
        table = schema.tables_by_name[entry.table]
        table.encode_key(entry, entity.table_entry)
        assert entry.action is not None
        table.encode_action(entry.action, entity.table_entry.action.action)
        yield entity


def _ignore(message: Any) -> None:
    """Ignore a message that the switch sends without being asked."""
