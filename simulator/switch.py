"""Switch of the data plane: pool, pending table, multicast and the sketch of misses, as in p4/weir.p4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from simulator.events import Loop
from simulator.link import Link
from simulator.messages import PROBE, QUESTION, Ask, Block, Put, Reply, Told
from simulator.network import Network, Port


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """Options of a switch."""

    merging: bool = True
    multicast: bool = True
    pending_cells: int = 16_384
    pending_timeout_s: float = 0.2
    sketch_epoch_s: float = 67.1
    recirculation_bytes_per_s: float = 25e9


@dataclass(slots=True)
class SwitchStats:
    """Counts of fragments, unless a name says bytes."""

    served: int = 0
    served_bytes: float = 0.0
    merged: int = 0
    retried: int = 0
    """Fragments forwarded although they were in flight, because the claim was too old."""
    unmerged: int = 0
    """Fragments forwarded without a claim, because the table was full."""
    copies: int = 0
    """Fragments in copies of replies beyond the first."""
    fills: int = 0
    pushed: int = 0


class Entry:
    """Block in the pool's index."""

    __slots__ = ("base_slot", "filled", "left")

    def __init__(self, base_slot: int) -> None:
        self.base_slot = base_slot
        self.filled: set[int] = set()
        """Parts that are in its slots."""
        self.left: dict[int, str] | None = None
        """Fragments that PUTs have left in its slots, each with its last sender; they don't count yet."""


Place = bytes | tuple[bytes, int]
"""Key of a claim: a block's (`Block.claim`), with the part unless that is the probe, as in most cases."""


class _Claim:
    __slots__ = ("asker", "since_s", "waiters")

    def __init__(self, since_s: float, waiter: str, asker: str) -> None:
        self.since_s, self.asker = since_s, asker
        self.waiters = [waiter]


Miss = Callable[[Ask, int, float, int], None]
"""Function that takes a value's request, the sketch's count, the home's backlog in ms, and the number of
waiting ports."""


class Switch:
    """Switch with a pool; `memory` limits the pool's reads and writes, None means line rate."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        network: Network,
        options: SwitchOptions,
        memory: Link | None,
    ) -> None:
        self.name = name
        self.stats = SwitchStats()
        self.index: dict[bytes, Entry] = {}
        self.hits: dict[int, int] = {}
        """Numbers of parts served, each of which has a slot, by the block's first slot."""
        self.touched: set[int] = set()
        """First slots whose counters have changed since they were read."""
        self.report_count = 0
        """Count from which a miss is reported; 0 means never."""
        self.tells = False
        """Whether it answers for its pool when nodes ask whether blocks are there."""
        self.on_miss: Miss | None = None
        self.on_nowhere: Callable[[Block], None] | None = None
        """Function that is called when a fill has found nothing at the block's home."""
        self.on_subscribed: Callable[[Block, str], None] | None = None
        """Function that is called when a neighbour subscribes to the prefix that begins with a block."""
        self.groups: dict[int, Sequence[str]] = {}
        """Multicast groups: the neighbours to which pushed parts are sent."""
        self.port_numbers = {port.peer: port.number for port in network.fabric.ports(name)}
        """Port number of each neighbour, ascending."""
        self._loop, self._network, self._options = loop, network, options
        self._memory = memory
        self._recirculation = Link(f"{name} recirculation", options.recirculation_bytes_per_s, 0.0)
        self._pending: dict[Place, _Claim] = {}
        """Claims, the oldest first."""
        self._counts: dict[bytes, tuple[int, int]] = {}
        self._value_bytes = network.sizes.value_bytes
        self._ports = network.ports_of(name)
        network.take_puts(name, self)

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """Serve, merge or forward GETs; answer STATs if it tells."""
        index, ports = self.index, self._ports
        alone = len(asks) == 1
        forward: dict[Port, list[Ask]] = {}
        for ask in asks:
            block = ask.block
            if ask.subscribes and self.on_subscribed is not None:
                self.on_subscribed(block, neighbour)
            if not ask.fill:
                entry = index.get(block.key)
                if entry is not None and ask.part in entry.filled:
                    self._serve(ask, entry, neighbour)
                    continue
                if self._merge(ask, neighbour):
                    continue
            elif self.tells and ask.part == QUESTION and self._tells_of(block):
                ports[neighbour].reply([Told(ask, held=True, from_pool=True)])
                continue
            port = ports[block.home]
            if alone:
                port.ask(asks, tail_s)
                return
            if port in forward:
                forward[port].append(ask)
            else:
                forward[port] = [ask]
        for port, rest in forward.items():
            port.ask(rest, tail_s)

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Fill slots from replies, count misses, and pass the replies on to those who wait."""
        index, ports, pending, merging = self.index, self._ports, self._pending, self._options.merging
        alone = len(replies) == 1
        onward: dict[Port, list[Reply]] = {}
        for reply in replies:
            ask = reply.ask
            if reply.group:  # what another switch pushed goes only to this one's hosts
                hosts = self._network.fabric.hosts
                self._fan_out(reply, [name for name in self.groups.get(reply.group, ()) if name in hosts])
                continue
            key, part = ask.block.key, ask.part
            entry = index.get(key) if reply.found else None
            if ask.fill:
                if entry is not None:
                    self._pass_value(ask, entry)
                if ask.asker == self.name:
                    if not reply.found and self.on_nowhere is not None:
                        self.on_nowhere(ask.block)
                    continue
            place: Place = ask.block.claim if part == PROBE else (ask.block.claim, part)
            claim = None if ask.fill else pending.get(place)
            if claim is not None and not reply.copy and claim.asker != ask.asker:
                claim = None  # made by another request
            waiters: Sequence[str] = ()
            if claim is not None:
                if merging:
                    waiters = claim.waiters
                del pending[place]
                if entry is not None:
                    self._pass_value(ask, entry)
            addressed = ports[ask.asker]
            if reply.found and entry is None and part == PROBE:
                self._count_miss(reply, len({addressed, *(ports[waiter] for waiter in waiters)}))
            if not waiters or (len(waiters) == 1 and ports[waiters[0]] is addressed):  # in most cases
                if alone:
                    addressed.reply(replies, tail_s)
                    return
                if addressed in onward:
                    onward[addressed].append(reply)
                else:
                    onward[addressed] = [reply]
                continue
            targets = [ports[waiter] for waiter in waiters]
            if addressed not in targets and not reply.copy:
                targets.append(addressed)  # forwarded without a claim, which someone else has made since
            if alone and len(targets) == 1:
                targets[0].reply(replies, tail_s)
                return
            if len(targets) > 1:
                self.stats.copies += (len(targets) - 1) * ask.fragments
                reply.merged = True
            for port in targets:
                onward.setdefault(port, []).append(reply if port is addressed else reply.copied())
        self._copy(onward.items(), tail_s)

    def passes(self, put: Put) -> None:
        """Leave the fragments of a node's PUT in the slots of its block, if that has an entry without filled
        parts.

        All of a PUT that begins to pass now is left. Of a large PUT that began before there was an entry, a
        real switch would have the rest.
        """
        entry = self.index.get(put.block.key)
        if entry is None or entry.filled or put.reclaim:
            return
        if entry.left is None:
            entry.left = {}
        for fragment in range(put.fragment, put.fragment + put.fragments):
            entry.left[fragment] = put.sender
        self._read_s(put.fragments)  # a write takes the memory's time as a read does

    def made(self, put: Put) -> None:
        """Count the fragments that a PUT has left here, as its home now holds the block; only whole parts
        count.

        Fragments of other senders' PUTs of the same block are another write and do not count.
        """
        block = put.block
        entry = self.index.get(block.key)
        if entry is None or entry.left is None:
            return
        left, entry.left = entry.left, None
        if entry.filled:
            return
        first = 0
        for part, fragments in enumerate(block.parts):
            after = first + fragments
            if all(left.get(fragment) == put.sender for fragment in range(first, after)):
                entry.filled.add(part)
                self.stats.fills += fragments
            first = after

    def install(self, key: bytes, base_slot: int) -> None:
        """Add an entry, which is not filled yet."""
        self.index[key] = Entry(base_slot)

    def remove(self, key: bytes) -> None:
        """Remove an entry."""
        self.index.pop(key, None)

    def fill(self, ask: Ask) -> None:
        """Fetch a part of a block into its slots."""
        self._ports[ask.block.home].ask([ask])

    def reclaim(self, put: Put) -> bool:
        """Send a part of a block to its home; return False if it is not here."""
        entry = self.index.get(put.block.key)
        if entry is None or put.fragment not in entry.filled:
            return False
        self._network.put(self.name, put, self._read_s(put.fragments))
        return True

    def holds(self, block: Block) -> bool:
        """Return whether all of a block is in the pool."""
        entry = self.index.get(block.key)
        return entry is not None and len(entry.filled) == len(block.parts)

    def _tells_of(self, block: Block) -> bool:
        """Return whether the last part of a block is in the pool: parts mostly fill from the first on."""
        entry = self.index.get(block.key)
        return entry is not None and len(block.parts) - 1 in entry.filled

    def read(self, block: Block) -> float:
        """Return when the pool's memory has delivered a block that is requested now."""
        return self._read_s(block.fragments)

    def push(self, block: Block, part: int, group: int) -> bool:
        """Multicast a part of a block to a group; return False if it is not here."""
        entry = self.index.get(block.key)
        if entry is None or part not in entry.filled:
            return False
        ask = Ask(block, part, block.parts[part], self.name, 0)
        reply = Reply(ask, found=True, from_pool=True)
        reply.group = group
        self.stats.pushed += ask.fragments
        self._send_pushed(reply, self.groups.get(group, ()), self._read_s(ask.fragments))
        return True

    def forget_counts(self) -> None:
        """Drop counts that the sketch has aged away; this only frees memory."""
        epoch = int(self._loop.now / self._options.sketch_epoch_s)
        self._counts = {key: count for key, count in self._counts.items() if count[0] + 1 >= epoch}

    def _serve(self, ask: Ask, entry: Entry, neighbour: str) -> None:
        fragments, slot = ask.fragments, entry.base_slot
        self.hits[slot] = self.hits.get(slot, 0) + 1
        self.touched.add(slot)
        self.stats.served += fragments
        self.stats.served_bytes += fragments * self._value_bytes
        reply = Reply(ask, found=True, from_pool=True)
        self._ports[neighbour].reply([reply], self._read_s(fragments))

    def _read_s(self, fragments: int) -> float:
        """Return when the pool's memory has delivered so many fragments."""
        if self._memory is None:
            return 0.0
        size_bytes = fragments * self._value_bytes
        return self._memory.send(self._loop.now, size_bytes, self._value_bytes)[1]

    def _merge(self, ask: Ask, neighbour: str) -> bool:
        """Return whether a request is absorbed; otherwise make a claim for it, if there is room.

        Only claimed values fill slots, so claims are made without merging, too.
        """
        place: Place = ask.block.claim if ask.part == PROBE else (ask.block.claim, ask.part)
        claim = self._pending.get(place)
        now_s = self._loop.now
        if claim is not None:
            if neighbour not in claim.waiters:
                claim.waiters.append(neighbour)
            if self._options.merging and now_s - claim.since_s < self._options.pending_timeout_s:
                self.stats.merged += ask.fragments
                return True
            claim.since_s, claim.asker = now_s, ask.asker
            del self._pending[place]
            self._pending[place] = claim
            self.stats.retried += ask.fragments if self._options.merging else 0
        elif len(self._pending) < self._options.pending_cells or self._drop_stale(now_s):
            self._pending[place] = _Claim(now_s, neighbour, ask.asker)
        else:
            self.stats.unmerged += ask.fragments
        return False

    def _drop_stale(self, now_s: float) -> bool:
        """Free the oldest cell if its claim is too old; return whether it was."""
        oldest = next(iter(self._pending))
        if now_s - self._pending[oldest].since_s < self._options.pending_timeout_s:
            return False
        del self._pending[oldest]
        return True

    def _pass_value(self, ask: Ask, entry: Entry) -> None:
        """Fill a part of the block's slots with a value that passes."""
        if ask.part not in entry.filled:
            entry.filled.add(ask.part)
            self.stats.fills += ask.fragments
            self._read_s(ask.fragments)  # a write takes the memory's time as a read does

    def _count_miss(self, reply: Reply, waiters: int) -> None:
        key = reply.ask.block.key
        epoch = int(self._loop.now / self._options.sketch_epoch_s)
        seen_epoch, count = self._counts.get(key, (epoch, 0))
        if seen_epoch != epoch:
            count = count >> 1 if seen_epoch + 1 == epoch else 0
        count += 1
        self._counts[key] = (epoch, count)
        threshold = self.report_count
        due = count == threshold or (count > threshold and not count & (count - 1))
        if threshold and due and self.on_miss is not None:
            self.on_miss(reply.ask, count, reply.backlog_ms, waiters)

    def _send_pushed(self, reply: Reply, to: Sequence[str], ready_s: float) -> None:
        """Send a part from the pool to these neighbours."""
        self._fan_out(reply, to, ready_s)

    def _fan_out(self, reply: Reply, to: Sequence[str], ready_s: float = 0.0) -> None:
        """Send a pushed part to these neighbours."""
        self._copy([(self._ports[name], [reply]) for name in to], ready_s)

    def _copy(self, groups: Iterable[tuple[Port, list[Reply]]], ready_s: float) -> None:
        """Send each group by its port: all at once or, without multicast, all but the first through
        recirculation."""
        for place, (port, group) in enumerate(groups):
            port.reply(group, self._recirculate(group) if place and not self._options.multicast else ready_s)

    def _recirculate(self, group: Sequence[Reply]) -> float:
        size_bytes = self._value_bytes * sum(reply.ask.fragments for reply in group)
        return self._recirculation.send(self._loop.now, size_bytes, self._value_bytes)[1]
