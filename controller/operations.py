"""Operations that the pool asks of a switch, and what it hears from it: typed, without P4Runtime.

`p4runtime_adapter.P4RuntimeAdapter` carries operations out on a switch; tests record them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, ClassVar, Protocol

from controller.block_id import block_id, key_of, tenant_of
from hostlib.protocol import wire
from hostlib.protocol.value_size import encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hostlib.protocol.expected import ExpectedBlock


@dataclass(frozen=True, slots=True)
class Install:
    """Enter a block into the pool index; from then on values that pass fill its slots."""

    key: bytes
    """Key of the block with its tenant (`block_id`), as everywhere in the controller."""
    base_slot: int
    generation: int
    fragments: int


@dataclass(frozen=True, slots=True)
class Replace(Install):
    """Install an entry for a key that has an entry already."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Take a block out of the pool index; its slots are free from then on."""

    key: bytes


@dataclass(frozen=True, slots=True)
class SetThreshold:
    """Set the count from which on misses are reported."""

    count: int


@dataclass(frozen=True, slots=True)
class SetGroup:
    """Set the ports of a multicast group; without ports, the group is removed."""

    group: int
    ports: frozenset[int]
    present: bool
    """Whether the switch has the group already."""


TableOperation = Install | Remove | SetThreshold | SetGroup


@dataclass(frozen=True, slots=True)
class PacketOperation:
    """A control operation on one fragment, carried out in band."""

    key: bytes
    fragment: int
    fragments: int
    destination: IPv4Address
    """The storage node concerned."""
    sequence: int
    """Comes back in the answer."""
    parent: int = 0
    """First 32 bits of the parent's key, where who gets the value should know it."""
    op: ClassVar[int]
    flags: ClassVar[int] = 0

    def message(self) -> wire.Message:
        """Return the packet as a message of the wire."""
        return wire.Message(
            self.op, key_of(self.key), self.fragment, self.fragments, self.flags, sequence=self.sequence,
            parent=self.parent, tenant=tenant_of(self.key),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fill(PacketOperation):
    """Fetch a block, from this fragment on, from its home into its slots. Answered only if the home does
    not have it."""

    op = wire.OP_FILL


@dataclass(frozen=True, slots=True)
class Reclaim(PacketOperation):
    """Send a fragment to a storage node, which acknowledges; NOT_FOUND if the slot is empty."""

    op = wire.OP_RECLAIM


@dataclass(frozen=True, slots=True)
class PushFragment(PacketOperation):
    """Multicast a fragment to the group in `sequence`; NOT_FOUND, flagged PUSHED, if the slot is empty."""

    op = wire.OP_PUSH
    flags = wire.FLAG_PUSHED


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell a host which storage nodes there are."""

    destination: IPv4Address
    epoch: int
    """The list's version."""
    value: bytes
    """The list (`hostlib.protocol.members`)."""
    sequence: int = 0
    """A storage node repeats it in a HELLO, at once; 0: nothing is asked for."""

    def message(self) -> wire.Message:
        """Return the packet as a message of the wire."""
        no_key = bytes(wire.KEY_BYTES)
        return wire.Message(
            wire.OP_MEMBERS, no_key, 0, 0, sequence=self.sequence, chain_blocks=encoded(wire.VALUE_BYTES),
            epoch=self.epoch & 0xFF, value=self.value,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ForgetWrite:
    """Have the switch forget one write of a block. The packet comes back when that is done."""

    key: bytes
    content: int
    fragments: int
    sequence: int
    destination: ClassVar[IPv4Address] = IPv4Address(0)
    """Address of nobody: the packet goes no further than the switch."""

    def message(self) -> wire.Message:
        """Return the packet as a message of the wire."""
        return _deleted(self.key, self.content, self.fragments, 0, self.sequence)


@dataclass(frozen=True, slots=True)
class DeletionDone:
    """Tell a node that all switches have forgotten a write."""

    key: bytes
    content: int
    fragments: int
    destination: IPv4Address
    sequence: int
    epoch: int
    """Epoch of the controller's list of storage nodes."""

    def message(self) -> wire.Message:
        """Return the packet as a message of the wire."""
        done = _deleted(self.key, self.content, self.fragments, wire.FLAG_HELD, self.sequence)
        return done._replace(generation=self.epoch, epoch=self.epoch & 0xFF)


@dataclass(frozen=True, slots=True)
class HintAnswer:
    """Tell a node whether the pool does what the node hinted at."""

    key: bytes
    hint: int
    is_done: bool
    destination: IPv4Address
    sequence: int

    def message(self) -> wire.Message:
        """Return the packet as a message of the wire."""
        return wire.Message(
            wire.OP_FOUND, key_of(self.key), 0, 1, wire.FLAG_BYPASS | wire.FLAG_HINT, sequence=self.sequence,
            backlog_ms=self.hint, recompute_ms=int(self.is_done), tenant=tenant_of(self.key),
        )  # fmt: skip


def _deleted(key: bytes, content: int, fragments: int, flags: int, sequence: int) -> wire.Message:
    return wire.Message(
        wire.OP_DELETED, key_of(key), 0, fragments, flags, sequence=sequence, tenant=tenant_of(key),
        content=content,
    )  # fmt: skip


PoolPacket = PacketOperation | HintAnswer
"""Packets that a pool sends."""
Packet = PoolPacket | Announce | ForgetWrite | DeletionDone


class Result(Enum):
    """Result of a table operation."""

    OK = auto()
    ALREADY_EXISTS = auto()
    NOT_FOUND = auto()
    FAILED = auto()
    """Anything else, such as a full table (RESOURCE_EXHAUSTED; on BMv2 UNKNOWN)."""


@dataclass(frozen=True, slots=True)
class HotMiss:
    """The digest `hot_miss_t`: a block that is not in the pool is fetched from its home again and again."""

    tenant: int
    key: bytes
    """Key as on the wire, without the tenant."""
    parent: int
    """First 32 bits of the parent's key, 0 for none."""
    depth: int
    chain_blocks: int
    fragments: int
    backlog_ms: int
    """The home's: how long what waits to leave it takes."""
    recompute_ms: int
    """Milliseconds that computing the block would cost the node that asked; 0 if it did not say."""
    count: int
    """The sketch's estimate of fetches from the home, halved each epoch."""
    waiters: int
    """Bitmap of the ports that this fetch answered."""
    home: IPv4Address
    """Storage node that the value came from, or that will keep it."""
    is_expected: ClassVar[bool] = False

    @property
    def block(self) -> bytes:
        """Return the block's ID."""
        return block_id(self.tenant, self.key)

    @property
    def nodes(self) -> int:
        """Nodes (or switches) that wanted the block together."""
        return max(1, self.waiters.bit_count())


@dataclass(frozen=True, slots=True)
class Expected(HotMiss):
    """No digest, but as good as one: a node computes the block and will put it; nobody has it yet."""

    is_expected: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Subscription:
    """The digest `subscription_t`: a node asked for a block and wants more of its prefix pushed."""

    tenant: int
    key: bytes
    """Key as on the wire, without the tenant."""
    parent: int
    """First 32 bits of the parent's key, 0 for none."""
    port: int
    """Port of the subscriber, or of the switch that passed its request on."""

    @property
    def block(self) -> bytes:
        """Return the block's ID."""
        return block_id(self.tenant, self.key)


@dataclass(frozen=True, slots=True)
class Answer:
    """A message of the protocol that came to the controller's own address."""

    source: IPv4Address
    message: wire.Message

    @property
    def block(self) -> bytes:
        """Return the ID of the block that it is about."""
        return block_id(self.message.tenant, self.message.key)


def expected(block: ExpectedBlock, tenant: int, count: int, home: IPv4Address) -> Expected:
    """Return a block that a node will put there, as a report; `count` fetches of it were reported before."""
    return Expected(
        tenant, block.key, block.parent, block.depth, block.chain_blocks, block.fragments, 0,
        block.recompute_ms, count, 0, home,
    )  # fmt: skip


class Adapter(Protocol):
    """One switch. Every method raises SwitchError when the switch can't be reached."""

    def write(self, operations: Sequence[TableOperation]) -> Sequence[Result]:
        """Carry out table operations; one result each. Their order is not guaranteed."""

    def send(self, operations: Sequence[PoolPacket]) -> None:
        """Send control operations; their answers come later, or never."""

    def read_blocks(self) -> list[Install]:
        """Return the pool index as it is."""

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Return fragments served of the blocks that lie there, and lay there before them."""
