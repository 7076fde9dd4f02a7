"""Several switches: two pipelines chained, so that merging, fan-out, filling and pushes meet on the way.

nodes A, B -- leaf -- spine -- store; C is at the spine's place of another leaf.
"""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP
from scapy.packet import Packet

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import FRAGMENTS, STORE, Rig, ip, key_of, number, ports
from v1model.backend import CompiledProgram
from v1model.dataplane import Replica, TableEntry
from v1model.ir import ActionCall, KeyMatch

KEY = key_of("block")
A, B, C = 1, 2, 3
UP, DOWN = 9, 1  # the leaf's port to the spine, and the spine's to the leaf
BOTH = p4.ROLE_REQUEST | p4.ROLE_REPLY
GROUP = 7


def make_trunk(rig: Rig, port: int) -> None:
    """No host behind the port, but another switch."""
    rig.set_role(port, BOTH | p4.ROLE_TRUNK, "0.0.0.0")
    rig.switch.delete(TableEntry(p4.HOSTS, (KeyMatch(port),), None))


class Chain:
    """What leaves one switch by the trunk enters the other."""

    def __init__(self, compiled: CompiledProgram) -> None:
        self.leaf, self.spine = Rig(compiled), Rig(compiled)
        make_trunk(self.leaf, UP)
        make_trunk(self.spine, DOWN)
        for node in (A, B):
            route = TableEntry(
                p4.ROUTES,
                (KeyMatch(number(ip(node)), prefix_length=32),),
                ActionCall("ingress.routing.forward", (2, DOWN)),
            )
            self.spine.switch.modify(route)

    def ask(self, node: int, **fields: int) -> list[tuple[int, Packet]]:
        """A node's GET; what leaves the spine."""
        passed = self.leaf.send(node, self.leaf.get(node, KEY, **fields))
        return [out for _, packet in passed for out in self.spine.send(DOWN, packet)]

    def fill_spine(self) -> None:
        self.spine.send(C, self.spine.get(C, KEY))
        self.spine.send(STORE, self.spine.value(C, KEY))

    def answer(self, node: int, **fields: int) -> list[tuple[int, Packet]]:
        """The store's reply; what leaves the leaf."""
        passed = self.spine.send(STORE, self.spine.value(node, KEY, **fields))
        return [out for port, packet in passed if port == DOWN for out in self.leaf.send(UP, packet)]


@pytest.fixture
def chain(compiled: CompiledProgram) -> Chain:
    return Chain(compiled)


def test_requests_merge_at_both_levels_and_replies_fan_out_at_both(chain: Chain) -> None:
    assert ports(chain.ask(A)) == [STORE]
    assert chain.ask(B) == []  # absorbed by the leaf
    assert chain.spine.send(C, chain.spine.get(C, KEY)) == []  # absorbed by the spine
    passed = chain.spine.send(STORE, chain.spine.value(A, KEY))
    assert ports(passed) == [DOWN, C]
    sent = chain.leaf.send(UP, passed[0][1])
    assert ports(sent) == [A, B]
    assert [packet[IP].dst for _, packet in sent] == [ip(A), ip(B)]


def test_a_copy_is_not_sent_back_to_where_its_addressee_is(chain: Chain) -> None:
    """C asked first, at the spine; the leaf gets a copy that is addressed to C."""
    chain.spine.send(C, chain.spine.get(C, KEY))
    chain.ask(A)
    copies = chain.spine.send(STORE, chain.spine.value(C, KEY))
    assert ports(copies) == [DOWN, C]
    to_leaf = copies[0][1]
    assert to_leaf[IP].dst == ip(C)
    to_c = TableEntry(
        p4.ROUTES,
        (KeyMatch(number(ip(C)), prefix_length=32),),
        ActionCall("ingress.routing.forward", (2, UP)),
    )
    chain.leaf.switch.modify(to_c)
    assert to_leaf[KV].flags & wire.FLAG_MERGED
    assert ports(chain.leaf.send(UP, to_leaf)) == [A]
    assert chain.leaf.send(UP, to_leaf) == []  # a second meets no waiters, and C has its own
    assert chain.leaf.outcomes()["no_route"] == 1


def test_a_reply_fills_the_pool_of_the_switch_that_has_an_entry(chain: Chain) -> None:
    chain.leaf.install(KEY)
    chain.ask(A)
    chain.answer(A)
    assert ports(chain.leaf.send(B, chain.leaf.get(B, KEY))) == [B]
    assert "fill_ended" not in chain.leaf.outcomes()


def test_the_spines_pool_answers_all_who_wait_at_the_leaf(chain: Chain) -> None:
    chain.spine.install(KEY)
    chain.fill_spine()
    chain.leaf.send(B, chain.leaf.get(B, KEY))
    ((port, reply),) = chain.spine.send(DOWN, chain.leaf.get(B, KEY))
    assert (port, reply[KV].flags & wire.FLAG_FROM_POOL) == (DOWN, wire.FLAG_FROM_POOL)
    assert ports(chain.leaf.send(UP, reply)) == [B]


def test_a_retry_passes_both_and_reaches_the_waiters_of_both(chain: Chain) -> None:
    chain.ask(A)
    chain.ask(B)
    assert ports(chain.ask(B, flags=wire.FLAG_RETRY)) == [STORE]  # the reply to A was lost
    assert ports(chain.answer(B)) == [A, B]


def test_what_the_spine_pushes_the_leaf_passes_on_to_its_own_group(chain: Chain) -> None:
    chain.spine.install(KEY)
    chain.fill_spine()
    chain.spine.switch.set_multicast_group(GROUP, [Replica(DOWN)])
    chain.leaf.switch.set_multicast_group(GROUP, [Replica(A), Replica(B), Replica(UP)])
    push = chain.spine.control(wire.OP_PUSH, KEY, sequence=GROUP, flags=wire.FLAG_PUSHED)
    ((port, value),) = chain.spine.send(p4.CPU_PORT, push)
    assert port == DOWN
    sent = chain.leaf.send(UP, value)
    assert ports(sent) == [A, B]  # and not back up: groups can't make a loop
    assert {packet[KV].flags & wire.FLAG_PUSHED for _, packet in sent} == {wire.FLAG_PUSHED}


def test_a_store_can_not_push(chain: Chain) -> None:
    chain.spine.switch.set_multicast_group(GROUP, [Replica(DOWN), Replica(C)])
    forged = chain.spine.value(C, KEY, sequence=GROUP, flags=wire.FLAG_PUSHED)
    assert chain.spine.send(STORE, forged) == []
    assert chain.spine.outcomes() == {"forbidden": 1}


def test_a_subscription_is_reported_with_the_port_at_each_level(chain: Chain) -> None:
    for rig in (chain.leaf, chain.spine):
        rig.switch.set_digest("subscription_t", rig.digest_config)
    chain.ask(A, flags=wire.FLAG_SUBSCRIBE, parent_key=5)
    key = int.from_bytes(KEY, "big")
    assert chain.leaf.digests() == [(0, key, 5, A)]
    assert chain.spine.digests() == [(0, key, 5, DOWN)]


def test_only_the_first_fragment_subscribes(chain: Chain) -> None:
    chain.leaf.switch.set_digest("subscription_t", chain.leaf.digest_config)
    for fragment in range(1, FRAGMENTS):
        chain.leaf.send(A, chain.leaf.get(A, KEY, fragment, flags=wire.FLAG_SUBSCRIBE))
    assert chain.leaf.digests() == []
