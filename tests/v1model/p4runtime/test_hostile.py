"""Whatever a controller sends, it gets P4Runtime errors: no exception, no hang, no crash."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p4.v1 import p4runtime_pb2

from tests.v1model.p4runtime.controller import INSERT, Controller
from tests.v1model.p4runtime.engines import CPU_PORT, Artifacts, RunningSwitch
from tests.v1model.p4runtime.test_tables import index_entry
from v1model.dataplane import DataPlaneError
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.pipeline import Pipeline

MAX_DEPTH = 7
NUMBERS = (0, 1, 2, 3, 7, 16, 510, 512, 65535, 1 << 16, (1 << 31) - 1)
BYTES = (b"", b"\0", b"\1", b"\xff\xff", b"uplink", bytes(17))


class MessageMaker:
    """Fills messages at random; ids are often those of the P4Info, so more checks are met."""

    def __init__(self, artifacts: Artifacts, source: random.Random) -> None:
        info = artifacts.p4info
        kinds = (info.tables, info.actions, info.counters, info.meters, info.registers, info.digests)
        self._ids = [item.preamble.id for kind in (*kinds, info.action_profiles) for item in kind]
        self._tables = {table.preamble.id: table for table in info.tables}
        self._random = source

    def entity(self) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        kind = self._random.choice(entity.DESCRIPTOR.fields).name
        self._fill(getattr(entity, kind), 0)
        if kind == "table_entry":
            self._make_plausible(entity.table_entry)
        return entity

    def _make_plausible(self, entry: p4runtime_pb2.TableEntry) -> None:
        table = self._random.choice(list(self._tables.values()))
        entry.table_id = table.preamble.id
        entry.action.action.action_id = self._random.choice(table.action_refs).id
        for match, field in zip(entry.match, table.match_fields, strict=False):
            match.field_id = field.id

    def _fill(self, message: Any, depth: int) -> None:
        message.SetInParent()
        for field in message.DESCRIPTOR.fields:
            if self._random.random() < 0.4 or depth > MAX_DEPTH:
                continue
            repeated = field.label == FieldDescriptor.LABEL_REPEATED
            if field.type != FieldDescriptor.TYPE_MESSAGE:
                value = self._scalar(field)
                if repeated:
                    getattr(message, field.name).append(value)
                else:
                    setattr(message, field.name, value)
            elif repeated:
                for _ in range(self._random.randrange(3)):
                    self._fill(getattr(message, field.name).add(), depth + 1)
            elif not field.message_type.full_name.startswith("google."):
                self._fill(getattr(message, field.name), depth + 1)

    def _scalar(self, field: FieldDescriptor) -> Any:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._random.choice(BYTES)
        if field.type == FieldDescriptor.TYPE_STRING:
            return self._random.choice(("", "x"))
        if field.type == FieldDescriptor.TYPE_BOOL:
            return self._random.random() < 0.3
        if field.name.endswith("_id") and self._random.random() < 0.7:
            return self._random.choice(self._ids)
        signed = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
        return self._random.choice((*NUMBERS, -1) if signed else NUMBERS)


@pytest.fixture(scope="module")
def pipeline(embedded_artifacts: Artifacts) -> Pipeline:
    data_plane = EmbeddedEngine({}, CPU_PORT).load(embedded_artifacts.device_config)
    config = p4runtime_pb2.ForwardingPipelineConfig(p4info=embedded_artifacts.p4info)
    return Pipeline(config, data_plane)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=st.randoms(use_true_random=False))
def test_random_entities(pipeline: Pipeline, embedded_artifacts: Artifacts, source: random.Random) -> None:
    maker = MessageMaker(embedded_artifacts, source)
    updates = [p4runtime_pb2.Update(type=source.randrange(4), entity=maker.entity()) for _ in range(8)]
    for error in pipeline.write(updates):
        assert error is None or error.code != "INTERNAL"
    for update in updates:
        wildcard = p4runtime_pb2.Entity()
        getattr(wildcard, update.entity.WhichOneof("entity")).SetInParent()
        for entity in (update.entity, wildcard):
            try:
                answers = pipeline.read([entity])
            except DataPlaneError:
                continue
            assert all(answer.IsInitialized() for answer in answers)


def test_writes_while_pipelines_change(controller: Controller, switch: RunningSwitch) -> None:
    c = controller
    codes: set[str] = set()
    done = threading.Event()

    def write() -> None:
        key = 0
        while not done.is_set():
            codes.update(c.write(INSERT, *(index_entry(c, key + i) for i in range(20))))
            key += 20

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {c.set_pipeline(switch.artifacts) for _ in range(10)} == {"OK"}
    finally:
        done.set()
        writer.join()
    assert "OK" in codes
    assert codes <= {"OK", "ABORTED", "RESOURCE_EXHAUSTED"}
