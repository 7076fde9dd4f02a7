"""Losses on request: what faults.p4 drops, and that the rest of the pipeline gets over it."""

import pytest

from hostlib.protocol import wire
from tests.p4.rig import NODES, STORE, Rig, key_of, ports
from v1model.backend import CompiledProgram
from v1model.dataplane import TableEntry
from v1model.ir import ActionCall, KeyMatch

KEY = key_of("block")
A, B, _ = NODES
ALL = 0xFFFF


@pytest.fixture
def rig(compiled_with_faults: CompiledProgram) -> Rig:
    return Rig(compiled_with_faults)


def lose(rig: Rig, share: int, op: int, port: int | None = None) -> None:
    matches = (KeyMatch(port, mask=0x1FF) if port is not None else None, KeyMatch(op, mask=0xFF))
    call = ActionCall("ingress.injected.lose", (share,))
    rig.switch.insert(TableEntry("ingress.injected.losses", matches, call, priority=1))


def test_nothing_is_lost_unless_asked(rig: Rig) -> None:
    assert ports(rig.send(A, rig.get(A, KEY))) == [STORE]


def test_chosen_packets_are_lost_and_counted(rig: Rig) -> None:
    lose(rig, ALL, wire.OP_GET, port=A)
    assert rig.send(A, rig.get(A, KEY)) == []
    assert ports(rig.send(B, rig.get(B, KEY))) == [STORE]
    assert rig.outcomes() == {"lost": 1, "claimed": 1}


def test_a_share_is_lost(rig: Rig) -> None:
    lose(rig, 0x4000, wire.OP_VALUE)
    arrived = sum(bool(rig.send(STORE, rig.value(A, KEY))) for _ in range(400))
    assert 240 < arrived < 360  # 300 expected; 5 standard deviations are 43


def test_a_lost_reply_leaves_the_waiters_for_the_retry(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, KEY))
    lose(rig, ALL, wire.OP_VALUE)
    assert rig.send(STORE, rig.value(A, KEY)) == []
    entry = TableEntry(
        "ingress.injected.losses", (None, KeyMatch(wire.OP_VALUE, mask=0xFF)), None, priority=1
    )
    rig.switch.delete(entry)
    assert ports(rig.send(B, rig.get(B, KEY, flags=wire.FLAG_RETRY))) == [STORE]
    assert ports(rig.send(STORE, rig.value(B, KEY))) == [A, B]
