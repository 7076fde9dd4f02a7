"""A request written by the data plane's own reader of P4Runtime's bytes has the same outcome as one written
message by message."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.v1model.p4runtime.controller import DELETE, INSERT, MODIFY
from tests.v1model.p4runtime.engines import Artifacts
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.schema import Schema
from v1model.p4runtime.service import UPDATES_AT_ONCE
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

VALUES = (
    b"\0",
    b"\1",
    b"\2",
    b"\0\1",
    b"\3",
    b"\xff",
    b"\1\xff",
    b"\x0a\0\0\0",
    b"\xff\xff\xff\xff",
    b"",
    bytes(9),
)


def make_update(info: p4info_pb2.P4Info, source: random.Random) -> p4runtime_pb2.Update:
    """An update of a table entry that is often right, and often hits one that is there."""
    update = p4runtime_pb2.Update(type=source.choice((INSERT, INSERT, MODIFY, DELETE, DELETE)))
    entry, table = update.entity.table_entry, source.choice(info.tables)
    entry.table_id = table.preamble.id
    for field in table.match_fields:
        if source.random() < 0.9 or field.match_type == p4info_pb2.MatchField.EXACT:
            fill_match(entry.match.add(field_id=field.id), field.match_type, source)
    if source.random() < 0.05 and entry.match:
        entry.match.append(entry.match[0])
    kinds = {field.match_type for field in table.match_fields}
    if kinds & {p4info_pb2.MatchField.TERNARY, p4info_pb2.MatchField.RANGE, p4info_pb2.MatchField.OPTIONAL}:
        entry.priority = source.choice((1, 1, 2, 0))
    if source.random() < 0.95:
        fill_action(entry.action.action, info, source.choice(table.action_refs).id, source)
    if source.random() < 0.1:
        entry.metadata = b"cookie"
    if source.random() < 0.05:
        entry.idle_timeout_ns = 1_000_000_000
    if source.random() < 0.05:
        entry.is_default_action = True
    return update


def fill_match(match: p4runtime_pb2.FieldMatch, kind: int, source: random.Random) -> None:
    if kind == p4info_pb2.MatchField.EXACT:
        match.exact.value = source.choice(VALUES)
    elif kind == p4info_pb2.MatchField.LPM:
        match.lpm.value, match.lpm.prefix_len = source.choice(VALUES), source.choice((0, 1, 8, 24, 32, 33))
    elif kind == p4info_pb2.MatchField.TERNARY:
        match.ternary.value, match.ternary.mask = source.choice(VALUES), source.choice(VALUES)
    elif kind == p4info_pb2.MatchField.RANGE:
        match.range.low, match.range.high = source.choice(VALUES), source.choice(VALUES)
    else:
        match.optional.value = source.choice(VALUES)


def fill_action(
    action: p4runtime_pb2.Action, info: p4info_pb2.P4Info, action_id: int, source: random.Random
) -> None:
    action.action_id = action_id
    params = next(known.params for known in info.actions if known.preamble.id == action_id)
    for param in params:
        if source.random() < 0.97:
            action.params.add(param_id=param.id, value=source.choice(VALUES[:6]))


@given(source=st.randoms(use_true_random=False))
def test_the_outcome_is_that_of_single_writes(
    pipelines: tuple[Pipeline, Pipeline], embedded_artifacts: Artifacts, source: random.Random
) -> None:
    fast, plain = pipelines
    info = embedded_artifacts.p4info
    request = p4runtime_pb2.WriteRequest(updates=[make_update(info, source) for _ in range(40)])
    batch = Batch(request)
    while not batch.is_done():
        fast.write_batch(batch, 7)
    expected = plain.write(request.updates)
    assert [str(error) for error in batch.results] == [str(error) for error in expected]
    assert held(fast) == held(plain)


def test_plain_entries_are_the_data_planes_own(
    pipelines: tuple[Pipeline, Pipeline], embedded_artifacts: Artifacts
) -> None:
    """Without this the property above would hold even if nothing went the short way."""
    data_plane, info = pipelines[0].data_plane, embedded_artifacts.p4info
    writer = data_plane.entry_writer(Schema(info, data_plane.program).wire_tables())
    source = random.Random(1)
    done = 0
    for _ in range(300):
        request = p4runtime_pb2.WriteRequest(updates=[make_update(info, source)]).SerializeToString()
        done += writer.write(request, 0, UPDATES_AT_ONCE)[0]
    assert done > 10


def held(pipeline: Pipeline) -> list[bytes]:
    """All entries of all tables."""
    wildcard = p4runtime_pb2.Entity()
    wildcard.table_entry.SetInParent()
    return [entity.SerializeToString(deterministic=True) for entity in pipeline.read_entities([wildcard])]
