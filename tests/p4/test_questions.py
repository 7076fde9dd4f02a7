"""Questions (STAT): what a pool says of its blocks, and what it leaves to homes."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTENT,
    FOREIGN_TENANT,
    FRAGMENTS,
    NODES,
    OTHER_CONTENT,
    STORE,
    TENANT,
    Rig,
    checksums_right,
    ip,
    key_of,
    mac,
)

KEY = key_of("block")
NODE, OTHER, _ = NODES


def stat(rig: Rig, node: int, key: bytes, **fields: int) -> Ether:
    return rig.frame(node, STORE, KV(op=wire.OP_STAT, key=key, **{"fragments": 0, **fields}))


def pooled(rig: Rig, tenant: int = 0) -> int:
    """All of the block is in the pool; its generation."""
    generation = rig.install(KEY, tenant=tenant)
    for fragment in range(FRAGMENTS):
        rig.fill(KEY, fragment, tenant=tenant)
    return generation


def test_a_question_about_a_block_that_is_filled_is_answered(rig: Rig) -> None:
    generation = pooled(rig)
    request = stat(rig, OTHER, KEY, sequence=77)
    ((port, reply),) = rig.send(OTHER, request)
    assert port == OTHER
    assert (reply[Ether].dst, reply[IP].dst, reply[IP].src) == (mac(OTHER), ip(OTHER), ip(STORE))
    said = wire.decode(bytes(reply[UDP].payload))
    assert (said.op, said.flags, said.sequence) == (wire.OP_FOUND, wire.FLAG_FROM_POOL, 77)
    assert (said.fragments, said.generation) == (FRAGMENTS, generation)
    ((_, value),) = rig.send(OTHER, rig.get(OTHER, KEY))
    assert said.content == wire.decode(bytes(value[UDP].payload)).content != 0
    assert (said.backlog_ms, said.recompute_ms) == (0, 0)
    assert len(reply) == len(request)
    assert checksums_right(reply)
    assert rig.outcomes()["told"] == 1
    assert rig.hits(0) == 1  # the GET's alone


@pytest.mark.parametrize("filled", [range(0), range(FRAGMENTS - 1)])
def test_a_question_about_a_block_that_is_not_all_there_goes_to_its_home(rig: Rig, filled: range) -> None:
    rig.install(KEY)
    for fragment in filled:
        rig.fill(KEY, fragment)
    assert [port for port, _ in rig.send(NODE, stat(rig, NODE, KEY))] == [STORE]
    assert rig.outcomes()["message"] == 1


def test_a_question_past_the_pool_goes_to_the_home(rig: Rig) -> None:
    pooled(rig)
    assert [port for port, _ in rig.send(NODE, stat(rig, NODE, KEY, flags=wire.FLAG_BYPASS))] == [STORE]


def test_a_pool_says_nothing_of_another_tenants_block(rig: Rig) -> None:
    rig.allow(NODE, FOREIGN_TENANT)
    pooled(rig, FOREIGN_TENANT)
    assert [port for port, _ in rig.send(NODE, stat(rig, NODE, KEY, tenant=FOREIGN_TENANT))] == [NODE]
    for own in (0, TENANT):
        assert [port for port, _ in rig.send(OTHER, stat(rig, OTHER, KEY, tenant=own))] == [STORE]
    assert rig.send(OTHER, stat(rig, OTHER, KEY, tenant=FOREIGN_TENANT)) == []
    assert rig.outcomes()["foreign_tenant"] == 1


def test_a_question_about_a_removed_block_goes_to_its_home(rig: Rig) -> None:
    pooled(rig)
    rig.remove(KEY)
    assert [port for port, _ in rig.send(NODE, stat(rig, NODE, KEY))] == [STORE]
    rig.install(KEY)
    assert [port for port, _ in rig.send(NODE, stat(rig, NODE, KEY))] == [STORE]


def test_a_question_about_a_block_of_which_the_end_is_of_another_write_goes_to_its_home(rig: Rig) -> None:
    pooled(rig)
    repairs = wire.FLAG_BYPASS | wire.FLAG_REPAIR
    rig.send(NODE, rig.get(NODE, KEY, 0, flags=repairs))
    rig.send(STORE, rig.value(NODE, KEY, 0, flags=repairs, content=OTHER_CONTENT))
    ((_, value),) = rig.send(NODE, rig.get(NODE, KEY, 0))
    assert wire.decode(bytes(value[UDP].payload)).content == OTHER_CONTENT
    assert [port for port, _ in rig.send(NODE, stat(rig, NODE, KEY))] == [STORE]


@pytest.mark.parametrize(
    ("asked", "port"),
    [
        ({"fragments": FRAGMENTS}, NODE),
        ({"fragments": FRAGMENTS + 1}, STORE),
        ({"content": CONTENT}, NODE),
        ({"content": OTHER_CONTENT}, STORE),
    ],
)
def test_a_pool_answers_for_the_length_and_write_that_are_asked_about(
    rig: Rig, asked: dict[str, int], port: int
) -> None:
    pooled(rig)
    assert [to for to, _ in rig.send(NODE, stat(rig, NODE, KEY, **asked))] == [port]
