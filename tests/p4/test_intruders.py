"""Merging as an intruder would use it: nobody waits for what it asked, nobody is told what it was told."""

import pytest

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import FRAGMENTS, NODES, OTHER_STORE, STORE, TENANT, Rig, key_of, ports, value_of
from v1model.dataplane import Replica

KEY = key_of("block")
VICTIM, OTHER_VICTIM, INTRUDER = NODES
RETRY = wire.FLAG_RETRY


def test_an_honest_not_found_of_another_store_goes_to_who_asked_there(rig: Rig) -> None:
    rig.send(VICTIM, rig.get(VICTIM, KEY))
    rig.send(OTHER_VICTIM, rig.get(OTHER_VICTIM, KEY))
    assert ports(rig.send(INTRUDER, rig.get(INTRUDER, KEY, home=OTHER_STORE, flags=RETRY))) == [OTHER_STORE]
    assert ports(rig.send(OTHER_STORE, rig.not_found(INTRUDER, KEY, home=OTHER_STORE))) == [INTRUDER]
    assert ports(rig.send(STORE, rig.value(VICTIM, KEY))) == [VICTIM, OTHER_VICTIM]


def test_a_get_for_another_home_changes_no_claim(rig: Rig) -> None:
    rig.send(VICTIM, rig.get(VICTIM, KEY))
    rig.send(INTRUDER, rig.get(INTRUDER, KEY, home=OTHER_STORE))
    assert ports(rig.send(OTHER_VICTIM, rig.get(OTHER_VICTIM, KEY))) == []
    assert ports(rig.send(STORE, rig.value(VICTIM, KEY))) == [VICTIM, OTHER_VICTIM]


@pytest.mark.parametrize("asked", [{"fragments": FRAGMENTS + 1}, {"content": 1}, {"home": OTHER_STORE}])
def test_requests_that_are_not_alike_absorb_nobody(rig: Rig, asked: dict[str, int]) -> None:
    for _ in range(3):
        rig.send(INTRUDER, rig.get(INTRUDER, KEY, flags=RETRY, **asked))
    assert ports(rig.send(VICTIM, rig.get(VICTIM, KEY))) == [STORE]
    assert ports(rig.send(OTHER_VICTIM, rig.get(OTHER_VICTIM, KEY))) == []
    assert ports(rig.send(STORE, rig.value(VICTIM, KEY))) == [VICTIM, OTHER_VICTIM]


def test_cells_full_of_odd_requests_cost_the_others_only_the_merge(rig: Rig) -> None:
    for fragments in (FRAGMENTS + 1, FRAGMENTS + 2):
        rig.send(INTRUDER, rig.get(INTRUDER, KEY, fragments=fragments))
    for victim in (VICTIM, OTHER_VICTIM):
        assert ports(rig.send(victim, rig.get(victim, KEY))) == [STORE]
        assert ports(rig.send(STORE, rig.value(victim, KEY))) == [victim]


def test_a_store_that_was_not_asked_answers_nobody_but_its_addressee(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(VICTIM, rig.get(VICTIM, KEY))
    assert ports(rig.send(OTHER_STORE, rig.value(INTRUDER, KEY, home=OTHER_STORE))) == [INTRUDER]
    assert ports(rig.send(STORE, rig.value(VICTIM, KEY))) == [VICTIM]


def test_a_bypass_with_an_absurd_length_is_no_hit(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    for _ in range(10):
        rig.send(INTRUDER, rig.get(INTRUDER, KEY, fragments=0xFFFF, flags=wire.FLAG_BYPASS))
    assert rig.hits() == 0


def test_unreadable_is_told_to_all_who_wait_and_other_refusals_are_not(rig: Rig) -> None:
    rig.send(VICTIM, rig.get(VICTIM, KEY))
    rig.send(OTHER_VICTIM, rig.get(OTHER_VICTIM, KEY))

    def refused(reason: int) -> list[int]:
        payload = KV(op=wire.OP_REFUSED, key=KEY, fragments=FRAGMENTS, generation=reason)
        return ports(rig.send(STORE, rig.frame(STORE, VICTIM, payload)))

    assert refused(wire.REFUSED_CONTENT) == [VICTIM]
    assert refused(wire.REFUSED_UNREADABLE) == [VICTIM, OTHER_VICTIM]


def test_a_push_goes_to_no_host_of_another_tenant(rig: Rig) -> None:
    rig.switch.set_multicast_group(7, [Replica(port) for port in (VICTIM, 20)])
    rig.set_role(20, p4.ROLE_REQUEST)
    rig.host_at(20)
    rig.install(KEY, tenant=TENANT)
    rig.fill(KEY, tenant=TENANT)
    push = rig.control(wire.OP_PUSH, KEY, sequence=7, tenant=TENANT, flags=wire.FLAG_PUSHED)
    ((port, packet),) = rig.send(p4.CPU_PORT, push)
    assert (port, bytes(packet[KV].payload)) == (VICTIM, value_of(KEY))
