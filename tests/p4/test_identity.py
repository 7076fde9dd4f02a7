"""Who may say what: addresses and tenants bound to ports, rates, and what goes to the controller."""

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTROLLER_IP,
    FOREIGN_TENANT,
    NODES,
    OTHER_STORE,
    STORE,
    TENANT,
    Rig,
    ip,
    key_of,
    ports,
)

KEY = key_of("block")
NODE, OTHER, _ = NODES
ALLOWED = 3  # packets, where a port is metered


@pytest.mark.parametrize("port", [NODE, STORE])
def test_a_spoofed_source_is_dropped_in_every_protocol(rig: Rig, port: int) -> None:
    for payload in (ICMP(), rig.get(OTHER, KEY)[IP].payload):
        assert rig.send(port, Ether() / IP(src=ip(OTHER), dst=ip(STORE)) / payload) == []
    assert rig.outcomes() == {"spoofed": 2}


def test_nothing_comes_from_a_port_that_nobody_configured(rig: Rig) -> None:
    assert rig.send(42, rig.get(NODE, KEY)) == []
    assert rig.outcomes() == {"spoofed": 1}


def test_a_foreign_tenant_is_dropped(rig: Rig) -> None:
    assert rig.send(NODE, rig.get(NODE, KEY, tenant=FOREIGN_TENANT)) == []
    assert rig.send(NODE, rig.put(NODE, KEY, (STORE,), tenant=FOREIGN_TENANT)) == []
    assert rig.outcomes() == {"foreign_tenant": 2}


@pytest.mark.parametrize("tenant", [wire.TENANT_PUBLIC, TENANT])
def test_a_host_may_name_its_tenants_and_the_public_namespace(rig: Rig, tenant: int) -> None:
    assert ports(rig.send(NODE, rig.get(NODE, KEY, tenant=tenant))) == [STORE]


def test_a_store_answers_for_every_tenant(rig: Rig) -> None:
    assert ports(rig.send(STORE, rig.value(NODE, KEY, tenant=FOREIGN_TENANT))) == [NODE]


def test_tenants_with_one_key_have_blocks_of_their_own(rig: Rig) -> None:
    rig.install(KEY, tenant=TENANT)
    rig.fill(KEY, tenant=TENANT)
    assert ports(rig.send(NODE, rig.get(NODE, KEY, tenant=TENANT))) == [NODE]
    assert ports(rig.send(NODE, rig.get(NODE, KEY))) == [STORE]
    assert ports(rig.send(OTHER, rig.get(OTHER, KEY))) == []  # waits for the public one


def test_what_one_tenant_asked_for_is_no_answer_to_another(rig: Rig) -> None:
    rig.send(NODE, rig.get(NODE, KEY, tenant=TENANT))
    assert ports(rig.send(STORE, rig.value(OTHER, KEY))) == [OTHER]
    assert ports(rig.send(STORE, rig.value(NODE, KEY, tenant=TENANT))) == [NODE]


@pytest.mark.parametrize(
    ("meter", "outcome", "fields"),
    [
        (p4.REQUEST_METER, "over_requests", {}),
        (p4.SPECIAL_METER, "over_special", {"flags": wire.FLAG_SUBSCRIBE}),
        (p4.SPECIAL_METER, "over_special", {"flags": wire.FLAG_BYPASS | wire.FLAG_REPAIR}),
    ],
)
def test_a_flood_of_requests_is_cut_at_the_rate_of_its_port(
    rig: Rig, meter: str, outcome: str, fields: dict[str, int]
) -> None:
    rig.limit(meter, NODE, ALLOWED)
    for _ in range(100):
        rig.send(NODE, rig.get(NODE, KEY, **fields))
    assert rig.outcomes()[outcome] == 100 - ALLOWED
    assert ports(rig.send(OTHER, rig.get(OTHER, key_of("another"), **fields))) == [STORE]


def test_a_flood_of_puts_is_cut_at_the_rate_of_its_port(rig: Rig) -> None:
    """Whatever homes they name, and without a word from the meter of requests."""
    rig.limit(p4.PUT_METER, NODE, ALLOWED)
    rig.limit(p4.REQUEST_METER, NODE, ALLOWED)
    for number in range(100):
        rig.send(NODE, rig.put(NODE, key_of(f"{number}"), [STORE, OTHER_STORE]))
    assert rig.outcomes()["over_requests"] == 100 - ALLOWED
    assert ports(rig.send(NODE, rig.get(NODE, KEY))) == [STORE]
    assert ports(rig.send(OTHER, rig.put(OTHER, KEY, [STORE]))) == [STORE]


@pytest.mark.parametrize("op", [wire.OP_STAT, wire.OP_LIST])
def test_questions_count_as_requests(rig: Rig, op: int) -> None:
    rig.limit(p4.REQUEST_METER, STORE, ALLOWED)
    for _ in range(100):
        rig.send(STORE, rig.frame(STORE, OTHER_STORE, KV(op=op, key=KEY, fragments=0)))
    assert rig.outcomes()["over_requests"] == 100 - ALLOWED


def test_what_is_within_the_rate_is_not_touched(rig: Rig) -> None:
    rig.limit(p4.SPECIAL_METER, NODE, ALLOWED)
    for number in range(100):
        assert rig.send(NODE, rig.get(NODE, key_of(f"{number}")))


def test_subscriptions_beyond_the_rate_are_not_reported(rig: Rig) -> None:
    rig.switch.set_digest("subscription_t", rig.digest_config)
    rig.limit(p4.SPECIAL_METER, NODE, ALLOWED)
    for number in range(100):
        rig.send(NODE, rig.get(NODE, key_of(f"{number}"), flags=wire.FLAG_SUBSCRIBE))
    assert len(rig.digests()) == ALLOWED


def test_a_flood_of_hellos_reaches_the_controller_at_its_port_s_rate_only(rig: Rig) -> None:
    rig.limit(p4.CONTROLLER_METER, NODE, ALLOWED)
    hello = KV(op=wire.OP_HELLO, key=bytes(16), fragments=0)
    for _ in range(100):
        rig.send(NODE, rig.frame(NODE, STORE, hello))
    assert len(rig.to_cpu) == ALLOWED
    assert rig.outcomes()["over_controller"] == 100 - ALLOWED
    rig.send(OTHER, rig.frame(OTHER, STORE, hello))
    assert rig.to_cpu[-1][0] == OTHER


@pytest.mark.parametrize("op", [None, wire.OP_GET, wire.OP_STAT])
def test_what_the_controller_has_no_use_for_does_not_reach_it(rig: Rig, op: int | None) -> None:
    """Even where no rate is configured."""
    if op is None:
        packet = Ether() / IP(src=ip(NODE), dst=CONTROLLER_IP) / ICMP()
    else:
        packet = rig.frame(NODE, CONTROLLER_IP, KV(op=op, key=KEY, fragments=0))
    rig.send(NODE, packet)
    assert rig.to_cpu == []
    assert rig.outcomes() == {"no_route": 1}


def test_misses_beyond_the_rate_are_forwarded_but_not_reported(rig: Rig) -> None:
    rig.report_from(1)
    rig.limit(p4.CONTROLLER_METER, STORE, ALLOWED)
    for number in range(10):
        assert ports(rig.send(STORE, rig.value(NODE, key_of(f"{number}")))) == [NODE]
    assert len(rig.digests()) == ALLOWED


@pytest.mark.parametrize("op", [wire.OP_STAT, wire.OP_LIST])
def test_messages_that_concern_no_slot_pass(rig: Rig, op: int) -> None:
    sender = STORE if op == wire.OP_LIST else NODE
    assert ports(rig.send(sender, rig.frame(sender, OTHER, KV(op=op, key=KEY, fragments=0)))) == [OTHER]
    assert rig.outcomes() == {"message": 1}


@pytest.mark.parametrize("to", [STORE, "192.0.2.1"])
def test_a_hello_reaches_the_controller_wherever_it_is_sent(rig: Rig, to: int | str) -> None:
    hello = KV(op=wire.OP_HELLO, key=bytes(16), fragments=0, epoch=3)
    assert rig.send(NODE, rig.frame(NODE, to, hello)) == []
    ((port, packet),) = rig.to_cpu
    assert (port, packet[KV].op, packet[KV].epoch, packet[IP].src) == (NODE, wire.OP_HELLO, 3, ip(NODE))


def test_members_come_from_the_controller_alone(rig: Rig) -> None:
    members = KV(op=wire.OP_MEMBERS, key=bytes(16), fragments=0) / b"list"
    ((port, packet),) = rig.send(p4.CPU_PORT, rig.frame(p4.CPU_PORT, NODE, members))
    assert (port, wire.decode(bytes(packet[KV])).value) == (NODE, b"list")
    for forger in (OTHER, STORE):
        assert rig.send(forger, rig.frame(forger, NODE, members)) == []
    assert rig.outcomes()["forbidden"] == 2
