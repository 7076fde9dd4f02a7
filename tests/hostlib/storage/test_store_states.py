"""Whatever happens to a storage node's blocks in whatever order: what is there was put, what was deleted
stays away, what was said to be safe is there after a power cut, and the accounts are right."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.protocol.block import Block, Place
from hostlib.protocol.content import block_content, derivation, sealed_block
from hostlib.protocol.errors import DiskError, UnreadableError
from hostlib.protocol.seal import Seal
from hostlib.protocol.tombstones import Tombstone, Tombstones
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import Kept
from tests.hostlib.network import commit_in_virtual_time
from tests.hostlib.sealed import SEAL, TENANT

PLACES = [Place(tenant, bytes([number]) * 16) for tenant in (TENANT, 8) for number in range(3)]
WRITES = (1, 2)
SEALS = {TENANT: SEAL, 8: Seal(8, b"another secret of sixteen bytes")}
UNIT = 700


def block(place: Place, write: int) -> Block:
    """Return one of two writes of a block, of different lengths."""
    content = block_content(place.key, UNIT * write)
    return sealed_block(SEALS[place.tenant], place.key, write, content)


def stone(place: Place, write: int) -> Tombstone:
    made = block(place, write)
    proof = SEALS[place.tenant].proof(place.key, made.fragments, write, made.value(0))
    return Tombstone(place, write, proof)


@dataclass
class Node:
    """A storage node's blocks, and what is known of them."""

    dram_bytes: int
    ssd_bytes: int
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    deleted: set[tuple[Place, int]] = field(default_factory=set)
    safe: dict[Place, frozenset[int]] = field(default_factory=dict)
    """Writes that were said to be safe, and did not leave since: several of one block where copies may have
    taken its place."""
    safe_deleted: set[tuple[Place, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Open a store on the disk as it is, as a process does when it starts."""
        self.ssd = SsdTier(self.disk, self.ssd_bytes, run=commit_in_virtual_time)
        self.store = BlockStore(
            self.dram_bytes, self.ssd, derivation(SEAL), tombstones=Tombstones(lambda: 1e9)
        )

    def make_safe(self, place: Place) -> None:
        held = self.store.find(place)
        assert held is not None
        ssd = self.ssd

        def done(error: DiskError | None) -> None:
            found = self.store.find(place)
            if error is None and ssd is self.ssd and found is not None and found[1] == held[1]:
                self.safe[place] = frozenset([held[1]])

        self.store.when_safe(place, done)

    def delete(self, place: Place, write: int) -> None:
        tombstone, ssd = stone(place, write), self.ssd
        assert self.store.delete(tombstone)
        self.deleted.add((place, write))
        if write in self.safe.get(place, ()):
            del self.safe[place]

        def done(error: DiskError | None) -> None:
            if error is None and ssd is self.ssd:
                self.safe_deleted.add((place, write))

        self.store.graveyard.when_safe(tombstone, done)

    def power_cut(self, keep: bool | None) -> None:
        self.store.abandon()
        self.disk.power_cut(keep)
        self.start()
        self.deleted = {one for one in self.deleted if stone(*one) in self.store.graveyard.stones}
        assert self.deleted >= self.safe_deleted

    def left(self) -> None:
        """Note what had to leave for want of room, of disk or memory."""
        self.safe = {place: writes for place, writes in self.safe.items() if place in self.ssd}

    def check(self) -> None:
        held: Counter[int] = Counter()
        on_disk = 0
        for place in PLACES:
            found = self.store.find(place)
            is_here = found is not None
            assert is_here == (place in self.store)
            assert is_here or not self.store.on_ssd_only(place)
            assert is_here or place not in self.store._retained
            proven = [write for write in WRITES if self.store.is_proven(stone(place, write))]
            assert proven == ([found[1]] if found is not None else [])
            if found is None:
                continue
            length, write = found
            assert (place, write) not in self.deleted
            assert length == len(block(place, write).content)
            assert place in self.store._dram or self.ssd.first_tag(place) == block(place, write).tag(0)
            held[place.tenant] += length
            on_disk += self.store.ssd_length(place)
        assert {tenant: self.store._tenant_bytes[tenant] for tenant in SEALS} == {
            tenant: held[tenant] for tenant in SEALS
        }
        assert on_disk <= self.ssd_bytes
        in_dram = sum(len(one.content) for one in self.store._dram.values() if isinstance(one, Block))
        assert self.store._dram_used == in_dram
        assert in_dram <= self.dram_bytes or self.store.sizes()["dram"] == 1
        if self.ssd_bytes >= 2 * UNIT * len(PLACES):
            for place, writes in self.safe.items():
                assert (self.store.find(place) or (0, 0))[1] in writes


places, writes = st.sampled_from(PLACES), st.sampled_from(WRITES)
operations = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.sampled_from(["put", "durable", "durable", "copy", "delete"]), places, writes),
            st.tuples(st.sampled_from(["read", "demote", "retain", "release"]), places),
            st.tuples(
                st.sampled_from(["cut", "cut all", "full", "failing", "syncs nothing", "works", "works"])
            ),
        ),
        st.sampled_from([0.0, 0.004, 5.0]),
    ),
    min_size=20,
    max_size=60,
)
"""Operations, each with the seconds that pass after it."""


async def carry_out(node: Node, operation: tuple[object, ...]) -> None:
    match operation:
        case ("put" | "durable" as kind, Place() as place, int(write)) if place not in node.store:
            outcome = node.store.put(place, block(place, write), kind == "durable")
            assert (outcome.kept is Kept.REFUSED) == ((place, write) in node.deleted)
            if kind == "durable" and place in node.store:
                node.make_safe(place)
        case ("copy", Place() as place, int(write)):
            fits = len(block(place, write).content) <= node.ssd_bytes
            node.store.replace(place, block(place, write), durable=True)
            if place in node.safe:
                node.safe[place] |= {write}
            held = node.store.find(place)
            assert held is None or held[1] == write or (place, write) in node.deleted or not fits
            if held is not None and held[1] == write:
                node.make_safe(place)
        case ("delete", Place() as place, int(write)):
            made_up = stone(place, write)._replace(proof=bytes(16))
            held = node.store.find(place)
            if held is not None and held[1] == write:
                assert not node.store.delete(made_up)
            node.delete(place, write)
        case ("read", Place() as place):
            found = node.store.find(place)
            try:
                read = node.store.get(place)
            except UnreadableError:  # it waited for the disk, which did not take it
                return
            assert read == (None if found is None else block(place, found[1]))
        case ("demote", Place() as place):
            node.store.demote(place)
            assert place not in node.store._retained
        case ("retain", Place() as place):
            assert not node.store.retain(place) or place in node.store
        case ("release", Place() as place):
            node.store.release(place)
        case ("cut" | "cut all" as kind,):
            node.power_cut(None if kind == "cut" else False)
        case ("full",):
            node.disk.full = True
        case ("failing",):
            node.disk.failing = True
        case ("syncs nothing",):
            node.disk.syncs_nothing = True
        case ("works",):
            node.disk.full = node.disk.failing = node.disk.syncs_nothing = False


@given(operations, st.sampled_from([1, 4 * UNIT, 100 * UNIT]), st.sampled_from([UNIT, 4 * UNIT, 100 * UNIT]))
def test_blocks_and_accounts_are_right_whatever_happens(
    happens: list[tuple[tuple[object, ...], float]], dram_bytes: int, ssd_bytes: int
) -> None:
    async def main() -> None:
        node = Node(dram_bytes, ssd_bytes)
        for operation, wait_s in happens:
            await carry_out(node, operation)
            await asyncio.sleep(wait_s)
            if ssd_bytes < 100 * UNIT:
                node.left()
            node.check()
        node.ssd.close()

    run_virtual(main())
