"""The storage nodes there are: a small list with a version (its epoch) that the controller hands to every
host.

The value of a MEMBERS message, integers big-endian:

    epoch u32, replicas u8, count u8, then for each node: number u8, state u8, IPv4 address u32

That of a node's HELLO is empty, or has 32 bytes, in which bit n (from the last one on) stands for the storage
node with number n, which it suspects. Both say in `chain_blocks` how long the sender's values are
(`hostlib.protocol.value_size`).

A node in the list keeps its place in the order of each key's homes whatever its state, so one that dies or
returns moves only its own share. Hosts without a controller make a list of their own (`Members.of`), which
has epoch 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import IPv4Address
from typing import Final

from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.homes import home_order
from hostlib.protocol.value_size import VALUE_BYTES, decoded, encoded

_HEAD = struct.Struct(">IBB")
_NODE = struct.Struct(">BBI")
MAX_NODES: Final = (wire.LIST_BYTES - _HEAD.size) // _NODE.size
HEARTBEAT_S: Final = 0.1
"""Seconds between two HELLOs of a storage node. It counts as down when three are missing."""
SETTLED_S: Final = 3.0
"""Seconds after which every host knows a new list: the controller has sent it to each of them twice."""
REFUSED_S: Final = 5.0
REFUSED_LISTS: Final = 3
"""A host that heard so many earlier lists, for so long, and none that is as late as its own, takes one."""
_ORDERS_KEPT = 65_536
EPOCHS: Final = 1 << 32
_NO_KEY: Final = bytes(wire.KEY_BYTES)
_SUSPECTS_BYTES: Final = 32
"""A bit for each number of a storage node."""


class State(IntEnum):
    """State of a storage node."""

    UP = 0
    JOINING = 1
    """It is back, and copies what it missed: it takes PUTs, and is read last."""
    DOWN = 2


@dataclass(frozen=True, slots=True)
class Member:
    """A storage node; `number`, 1 to 255, stands for it in PUTs."""

    number: int
    address: str
    state: State = State.UP


@dataclass(frozen=True)
class Members:
    """See the module. ValueError for a list that cannot be."""

    epoch: int
    replicas: int
    nodes: tuple[Member, ...]
    _orders: dict[bytes, tuple[Member, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _by_address: dict[str, Member] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._by_address.update((member.address, member) for member in self.nodes)
        if not 1 <= self.replicas <= wire.MAX_REPLICAS:
            raise ValueError(f"a block has 1 to {wire.MAX_REPLICAS} homes, not {self.replicas}")
        if len(self.nodes) > MAX_NODES:
            raise ValueError(f"{len(self.nodes)} storage nodes; a list holds {MAX_NODES}")
        numbers, addresses = {m.number for m in self.nodes}, {m.address for m in self.nodes}
        if len(numbers) < len(self.nodes) or len(addresses) < len(self.nodes):
            raise ValueError("two storage nodes with one number or one address")
        if not all(0 < number < 256 for number in numbers):
            raise ValueError("a storage node's number is 1 to 255")

    @classmethod
    def of(cls, addresses: Iterable[str], replicas: int = 1) -> Members:
        """Return a list with all of them up, numbered in the order of their addresses, so that every host
        numbers them alike."""
        ordered = sorted(set(addresses), key=IPv4Address)
        return cls(0, replicas, tuple(Member(at, address) for at, address in enumerate(ordered, 1)))

    def order(self, key: bytes) -> tuple[Member, ...]:
        """Return all nodes in the order in which they are the key's homes, whatever their state."""
        order = self._orders.get(key)
        if order is None:
            if len(self._orders) >= _ORDERS_KEPT:
                self._orders.clear()
            by_address = self._by_address
            order = tuple(map(by_address.__getitem__, home_order(key, list(by_address))))
            self._orders[key] = order
        return order

    def homes(self, key: bytes, replicas: int | None = None) -> tuple[Member, ...]:
        """Return who shall hold the key: the first R that are not down."""
        alive = [member for member in self.order(key) if member.state is not State.DOWN]
        return tuple(alive[: replicas or self.replicas])

    def homes_are_joining(self, key: bytes) -> bool:
        """Return whether no home of the key is up: those that are joining may lack what others hold that were
        given it in their place, wherever these come in the key's order."""
        return all(home.state is not State.UP for home in self.homes(key))

    def down_homes(self, key: bytes) -> tuple[Member, ...]:
        """Return who is down and may have been given the key: all that come before the last of R homes that
        are up, or all if no home is up."""
        down, up, ends = [], 0, not self.homes_are_joining(key)
        for member in self.order(key):
            if member.state is State.DOWN:
                down.append(member)
            up += member.state is State.UP
            if ends and up == self.replicas:
                break
        return tuple(down)

    def is_home(self, number: int, key: bytes) -> bool:
        """Return whether the node holds the key as soon as it is there, whatever is known of its state."""
        before = 0
        for member in self.order(key):
            if member.number == number:
                return True
            before += member.state is not State.DOWN
            if before == self.replicas:
                return False
        return False

    def at(self, address: str) -> Member | None:
        """Return the node with this address, or None."""
        return self._by_address.get(address)

    def is_down(self, address: str) -> bool:
        """Return whether a node with this address is in the list, and down."""
        member = self.at(address)
        return member is not None and member.state is State.DOWN

    def is_another(self, epoch_byte: int) -> bool:
        """Return whether a message's `epoch`, which is one modulo 256, is of another list than this. Who is
        far behind can't tell by it who has the later one; 0 is of a list that no controller made."""
        return epoch_byte not in (0, self.epoch & 0xFF)

    def encode(self) -> bytes:
        """Return the value of a MEMBERS message."""
        nodes = (_NODE.pack(m.number, m.state, int(IPv4Address(m.address))) for m in self.nodes)
        return _HEAD.pack(self.epoch, self.replicas, len(self.nodes)) + b"".join(nodes)

    @classmethod
    def decode(cls, value: wire.Buffer) -> Members:
        """Return the list in the value of a MEMBERS message; raises MalformedError for anything that is
        none."""
        try:
            epoch, replicas, count = _HEAD.unpack_from(value)
            if len(value) != _HEAD.size + count * _NODE.size:
                raise ValueError("length")
            nodes = _NODE.iter_unpack(memoryview(value)[_HEAD.size :])
            members = (Member(n, str(IPv4Address(a)), State(s)) for n, s, a in nodes)
            return cls(epoch, replicas, tuple(members))
        except (ValueError, struct.error):
            raise MalformedError("members") from None


def is_later(epoch: int, than: int) -> bool:
    """Return whether a list's epoch is later than another's, by serial number arithmetic (RFC 1982).

    So no epoch is so high that no later one follows. A list from a configuration (0) is the earliest.
    """
    if not than or not epoch:
        return epoch != than and not than
    return 0 < (epoch - than) % EPOCHS < EPOCHS // 2


def is_later_in_message(epoch: int, than: int) -> bool:
    """Return the same for epochs modulo 256, as messages carry them; 0 is an epoch like others."""
    return 0 < (epoch - than) % 256 < 128


class Refused:
    """Lists that a host did not take because it knows a later one.

    If nothing else has been heard for some seconds, that one is of a controller that is gone, whose clock was
    ahead or who believed a liar: it is the controller's word that counts, and a switch lets through nobody
    else's.
    """

    def __init__(self) -> None:
        self._count = 0
        self._since_s = 0.0

    def takes(self, epoch: int, known: int, now_s: float) -> bool:
        """Return whether a host that knows a list takes another one that it hears of now."""
        if is_later(epoch, known) or epoch == known:
            self._count = 0
            return epoch != known
        if not self._count:
            self._since_s = now_s
        self._count += 1
        if self._count < REFUSED_LISTS or now_s - self._since_s < REFUSED_S:
            return False
        self._count = 0
        return bool(epoch)


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next list. It is never 0 modulo 256, because messages carry it modulo 256."""
    following = epoch % (EPOCHS - 1) + 1
    return following + (following % 256 == 0)


def hello(
    members: Members,
    tenant: int = wire.TENANT_PUBLIC,
    caught_up: bool = True,
    probe: int = 0,
    suspects: Iterable[str] = (),
) -> wire.Message:
    """Return a HELLO. Its flag HELD says that a storage node is `caught_up`; else it still copies what it
    missed.

    `probe` is the number of the last MEMBERS that reached the sender. A node names the storage nodes that it
    suspects to be dead, by address.
    """
    flags = wire.FLAG_HELD if caught_up else 0
    return wire.Message(
        wire.OP_HELLO, _NO_KEY, 0, 0, flags, members.epoch, probe, tenant=tenant,
        chain_blocks=encoded(VALUE_BYTES), epoch=members.epoch & 0xFF, value=_suspected(members, suspects),
    )  # fmt: skip


def other_size(message: wire.Message) -> str:
    """Return what is wrong with the size of values that the sender of a HELLO or MEMBERS has, in a sentence;
    nothing if it is this process's own."""
    said = decoded(message.chain_blocks)
    if said == VALUE_BYTES:
        return ""
    return (
        f"values have {said} bytes there and {VALUE_BYTES} here: one network has one size "
        "(VALUE_BYTES of the run, or WEIR_VALUE_BYTES where the process starts)"
    )


def _suspected(members: Members, addresses: Iterable[str]) -> bytes:
    bits = 0
    for address in addresses:
        member = members.at(address)
        bits |= 1 << member.number if member is not None else 0
    return bits.to_bytes(_SUSPECTS_BYTES, "big") if bits else b""


def suspects_in(value: wire.Buffer) -> frozenset[int]:
    """Return the numbers of the storage nodes that a node suspects, by the value of its HELLO; none of a
    value that is no such list."""
    if len(value) != _SUSPECTS_BYTES:
        return frozenset()
    bits = int.from_bytes(value, "big")
    return frozenset(number for number in range(1, 8 * _SUSPECTS_BYTES) if bits >> number & 1)
