"""Whatever a controller sends, it gets P4Runtime errors: no exception, no hang, no crash."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.v1model.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from tests.v1model.p4runtime.engines import CPU_PORT, Artifacts, RunningSwitch
from tests.v1model.p4runtime.test_tables import index_entry
from v1model.dataplane import DataPlaneError
from v1model.fuzz.requests import MessageMaker
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.service import MAX_ENTITIES, MAX_UPDATES
from v1model.protos.p4.v1 import p4runtime_pb2

KINDS = (p4runtime_pb2.Update.UNSPECIFIED, INSERT, MODIFY, DELETE)


@pytest.fixture(scope="module")
def pipeline(embedded_artifacts: Artifacts) -> Pipeline:
    data_plane = EmbeddedEngine({}, CPU_PORT).load(embedded_artifacts.device_config)
    config = p4runtime_pb2.ForwardingPipelineConfig(p4info=embedded_artifacts.p4info)
    return Pipeline(config, data_plane)


@given(source=st.randoms(use_true_random=False))
def test_random_entities(pipeline: Pipeline, embedded_artifacts: Artifacts, source: random.Random) -> None:
    maker = MessageMaker(embedded_artifacts.p4info, source)
    updates = [p4runtime_pb2.Update(type=source.choice(KINDS), entity=maker.entity()) for _ in range(8)]
    for error in pipeline.write(updates):
        assert error is None or error.code != "INTERNAL"
    for update in updates:
        wildcard = p4runtime_pb2.Entity()
        getattr(wildcard, update.entity.WhichOneof("entity")).SetInParent()
        for entity in (update.entity, wildcard):
            try:
                answers = list(pipeline.read([entity]))
            except DataPlaneError:
                continue
            assert all(answer.IsInitialized() for answer in answers)


def test_a_long_batch_lets_others_have_their_turn(controller: Controller) -> None:
    """It held the server to its end: neither a read nor the election of a primary was answered."""
    c = controller
    entry = index_entry(c, 1)
    c.insert(entry)
    entry.table_entry.metadata = b"slow: metadata is the server's own, in Python"
    request = p4runtime_pb2.WriteRequest(election_id=p4runtime_pb2.Uint128(low=1))
    for _ in range(40_000):
        request.updates.add(type=MODIFY, entity=entry)
    outcome = c.client.stub.Write.future(request)
    while not c.read_table("index")[0].table_entry.metadata and not outcome.done():
        pass
    for _ in range(4):
        c.read_table("index")
    assert not outcome.done(), "four reads took longer than the batch"
    second = Controller(c.address, c.p4info, election_id=2)
    try:
        error = outcome.exception(timeout=60)
        # The new primary's writes don't mix with the old one's: its batch ends.
        assert "of 40000 updates failed; at index" in error.details()
        assert "PERMISSION_DENIED" in error.details()
    finally:
        second.close()


def test_requests_of_too_many_parts_are_refused(controller: Controller) -> None:
    request = p4runtime_pb2.WriteRequest()
    request.updates.extend([p4runtime_pb2.Update()] * (MAX_UPDATES + 1))
    assert set(controller.write_request(request)) == {"RESOURCE_EXHAUSTED"}
    entities = [p4runtime_pb2.Entity()] * (MAX_ENTITIES + 1)
    assert controller.read_code(*entities) == "RESOURCE_EXHAUSTED"


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
