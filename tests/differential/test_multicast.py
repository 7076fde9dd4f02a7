"""Multicast groups as P4Runtime sets, changes and reads them, and the copies that they make."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conformance import bmv2
from tests.differential.pair import Pair
from tests.differential.reference import Reference
from v1model.compile import compile_p4
from v1model.dataplane import Replica
from v1model.switch import Switch

PROGRAM = Path(__file__).with_name("multicast.p4")
GROUPS, ROUNDS, PACKETS = 6, 5, 40

pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.skipif(not bmv2.is_present(), reason="p4c-bm2-ss and simple_switch_grpc are not on PATH"),
]


def test_groups_that_change(seed: str) -> None:
    """Several replicas may have one port, with instances of their own."""
    rng = random.Random(f"{seed} multicast")
    with Switch(compile_p4(PROGRAM)) as embedded, Reference(PROGRAM) as reference:
        pair = Pair(embedded, reference)
        for _ in range(ROUNDS):
            for group in range(1, GROUPS):
                replicas = {Replica(rng.randrange(8), rng.randrange(1, 4)) for _ in range(rng.randrange(5))}
                for plane in (embedded, reference.data_plane):
                    plane.set_multicast_group(
                        group, tuple(sorted(replicas, key=lambda r: (r.port, r.instance)))
                    )
            pair.send((rng.randrange(4), frame(rng.randrange(1, GROUPS + 2))) for _ in range(PACKETS))
        pair.finish()


def frame(group: int) -> bytes:
    return b"\0" + group.to_bytes(4, "big") + bytes(12)
