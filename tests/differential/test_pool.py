"""The pool's program through both engines: hits, fills, merges, retries, control operations, digests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether

from controller import p4_constants as p4
from hostlib.tools.scapy_layer import KV
from tests.conformance import bmv2
from tests.differential.conftest import DEFAULT_SEED
from tests.differential.pair import Pair
from tests.differential.reference import Reference
from tests.differential.traffic import KEYS, Traffic
from tests.p4.conftest import PROGRAM, SIZES
from tests.p4.rig import FRAGMENTS, NODES, STORE, Rig
from v1model.compile import compile_p4
from v1model.dataplane import DigestConfig
from v1model.ir import ActionCall

ROUNDS, PACKETS = 12, 256
# Time plays no part: claims don't get old, the sketch's counts don't age.
TIMELESS = {"PENDING_TIMEOUT_US": 1 << 40, "SKETCH_EPOCH_SHIFT": 47}

pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.skipif(not bmv2.is_present(), reason="p4c-bm2-ss and simple_switch_grpc are not on PATH"),
]


@contextmanager
def both(directory: Path) -> Iterator[tuple[Rig, Pair]]:
    """The program with small sizes, and what a controller installs."""
    program = directory / "weir.p4"
    defines = "".join(f"#define {name} {value}\n" for name, value in (SIZES | TIMELESS).items())
    program.write_text(f'{defines}#include "{PROGRAM}"\n')
    rig = Rig(compile_p4(program))
    install_blocks(rig)
    rig.switch.set_digest("subscription_t", DigestConfig(max_list_size=1))
    with rig.switch, Reference(program) as reference:
        copy_entries(rig, reference)
        yield rig, Pair(rig.switch, reference)


def install_blocks(rig: Rig) -> None:
    """Of the ten keys four are resident, one of them reaches beyond the last slot."""
    for number, key in enumerate(KEYS[:3]):
        rig.install(key, base_slot=number * FRAGMENTS)
    rig.install(KEYS[8], base_slot=SIZES["POOL_SLOTS"] - 2)


def copy_entries(rig: Rig, reference: Reference) -> None:
    plane = reference.data_plane
    for table in rig.switch.program.tables:
        for entry in rig.switch.entries(table.name):
            plane.insert(entry)
    plane.set_multicast_group(p4.MULTICAST_WAITERS, rig.switch.multicast_groups()[p4.MULTICAST_WAITERS])
    for name, config in rig.switch.digests().items():
        reference.set_digest(name, config)


def set_default(pair: Pair, table: str, action: str, argument: int) -> None:
    for plane in (pair.embedded, pair.reference.data_plane):
        plane.set_default(table, ActionCall(action, (argument,)))


def test_pool(tmp_path: Path, seed: str) -> None:
    rng = random.Random(seed)
    with both(tmp_path) as (rig, pair):
        traffic = Traffic(rig, rng)
        set_default(pair, "ingress.misses.settings", "ingress.misses.report_from", 2)
        for _ in range(ROUNDS):
            set_default(
                pair, "ingress.in_flight.settings", "ingress.in_flight.merge", int(rng.random() < 0.7)
            )
            pair.send(traffic.packet() for _ in range(PACKETS))
        pair.finish()
        outcomes = rig.outcomes()
    # What depends on time is left out: rates are not configured.
    metered = {"over_requests", "over_special", "over_controller"}
    never = set(p4.OUTCOME_NAMES) - outcomes.keys() - {"lost"} - metered
    # Not every seed's traffic leads everywhere; the default one's does.
    assert not never or seed != DEFAULT_SEED, f"the traffic never led to {never}: {outcomes}"


def test_requests_by_every_thousandth_checksum_and_those_about_ffff(tmp_path: Path) -> None:
    """Right ones pass, FFFF too, which csum16 of what it covers is never; damaged ones do not."""
    node = NODES[0]
    with both(tmp_path) as (rig, pair):
        for ask in (rig.get(node, KEYS[9]), rig.put(node, KEYS[9], [STORE])):

            def numbered(sequence: int, ask: Ether = ask) -> bytes:
                ask[KV].sequence = sequence
                return bytes(ask)

            middle = Ether(numbered(0))[UDP].chksum  # that of this sequence is FFFF
            sequences = [*range(middle - 3, middle + 4), *range(0, 0x10000, 1000)]
            right = [numbered(sequence) for sequence in sequences]
            assert any(Ether(data)[UDP].chksum == 0xFFFF for data in right)
            damaged = [data[:-1] + bytes([data[-1] ^ 1]) for data in right]
            pair.send((node, data) for data in (*right, *damaged))
        pair.finish()
        assert rig.outcomes()["malformed"] == 2 * len(sequences)
