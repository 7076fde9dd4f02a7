"""Client of a node, which fetches chains of blocks and puts new ones, as hostlib.client.client does.

Probes of all blocks of a chain leave first. A block's body is requested once its probe has come; NOT_FOUND
ends the chain. A block is fetched once, even if several requests of the node want it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hostlib.client.backlogs import Backlogs
from hostlib.native.lane_options import LaneOptions
from simulator.events import Loop
from simulator.lane import Lane
from simulator.lanes import Lanes
from simulator.messages import NOWHERE, PROBE, QUESTION, Ask, Block, Put, Reply, Told
from simulator.network import Network
from simulator.prefix import Prefix
from simulator.pushed import PushedParts


class _Transfer:
    """Block that is being fetched."""

    __slots__ = ("begun_s", "block", "chains", "fragments", "lane", "missing", "pool_fragments")

    def __init__(
        self, block: Block, missing: int, begun_s: float, chain: ChainFetch, place: int, lane: Lane[Ask]
    ) -> None:
        self.block = block
        self.missing = missing
        """Parts that have not come, as bits."""
        self.begun_s = begun_s
        """Time in seconds at which its first request left."""
        self.chains = [(chain, place)]
        """Chains that wait for the block, each with the block's index in it."""
        self.lane = lane
        """Lane of the parts that are requested now."""
        self.fragments = 0
        self.pool_fragments = 0


class ChainFetch(Prefix):
    """Fetch of a chain's longest available prefix."""

    def __init__(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        super().__init__(len(blocks), finished)
        self.transfers: list[_Transfer] = []


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Bounds of a client, with hostlib.node.inference's defaults."""

    lane: LaneOptions = field(default_factory=LaneOptions)
    put_workers: int = 4
    max_waiting_puts: int = 1024
    before_held: int = 1
    """Number of fragments of a PUT that have left by the time the home answers that it already holds the
    block, which ends the PUT. A host's window of fragments of 512 bytes is tiny beside a real block: one
    here."""


class Client:
    """Client of one node; a vertex of the network."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        network: Network,
        options: ClientOptions,
        pushed: PushedParts | None = None,
    ) -> None:
        """Set up the client of node `name`.

        `pushed` takes parts that come without a request; without it the client subscribes to nothing.
        """
        self.name = name
        self.pushed = pushed
        self.get_s: list[float] = []
        """Seconds of each fetched block, counted as hosts do, from its first request on the wire."""
        self._loop, self._network, self._options = loop, network, options
        self._port, _ = network.access(name)
        self._transfers: dict[bytes, _Transfer] = {}
        self._lanes = Lanes(options.lane)
        self._puts: dict[str, Lane[Put]] = {}
        self._questions: dict[bytes, list[tuple[Prefix, int]]] = {}
        """Prefixes that ask whether a block is there, each with the block's index in it."""
        self._waiting_puts: deque[Block] = deque()
        self._puts_active: set[bytes] = set()
        self._backlogs = Backlogs()

    def backlog_s(self, home: str) -> float:
        """Return how many seconds of the backlog that a home last reported are left."""
        return self._backlogs.wait_s(home, self._loop.now)

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Fetch a chain; `finished` gets the source of each block of the prefix that was available."""
        chain = ChainFetch(blocks, finished)
        chain_blocks, now_s = blocks[-1].depth + 1, self._loop.now
        transfers = self._transfers
        for place, block in enumerate(blocks):
            transfer = transfers.get(block.key)
            if transfer is None:
                missing, lane = (1 << len(block.parts)) - 1, self._lanes.probes(block.home)
                transfer = _Transfer(block, missing, now_s, chain, place, lane)
                transfers[block.key] = transfer
                subscribes = self.pushed is not None and self.pushed.asks(block, now_s)
                lane.waiting.append(Ask(block, PROBE, 1, self.name, chain_blocks, subscribes=subscribes))
            else:
                transfer.chains.append((chain, place))
            chain.transfers.append(transfer)
        self._pump()

    def ask(self, blocks: Sequence[Block], answered: Callable[[], None]) -> None:
        """Ask homes, and the switches on the way that answer, whether they hold a chain's blocks.

        `answered` is called when the longest available prefix is known.
        """
        prefix = Prefix(len(blocks), lambda sources: answered())
        chain_blocks = blocks[-1].depth + 1
        for place, block in enumerate(blocks):
            asking = self._questions.get(block.key)
            if asking is None:
                asking = self._questions[block.key] = []
                ask = Ask(block, QUESTION, 1, self.name, chain_blocks, fill=True)
                self._lanes.questions(block.home).waiting.append(ask)
            asking.append((prefix, place))
        self._pump()

    def store(self, blocks: Iterable[Block]) -> None:
        """Store new blocks at their homes in the background."""
        waiting, most = self._waiting_puts, self._options.max_waiting_puts
        for block in blocks:
            if len(waiting) < most:
                waiting.append(block)
        self._start_puts()

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """Raise AssertionError: an inference node holds nothing for others."""
        raise AssertionError("an inference node holds nothing for others")

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Take replies that have arrived in full."""
        now_s = self._loop.now
        for reply in replies:
            ask = reply.ask
            if isinstance(reply, Told):
                self._told(reply, now_s)
                continue
            block, part = ask.block, 1 << ask.part
            transfer = self._transfers.get(block.key)
            if transfer is None and reply.group and self.pushed is not None:
                self.pushed.offer(block, ask.part)
            if transfer is None or not part & transfer.missing:
                continue
            if ask.part != PROBE and transfer.missing & 1 << PROBE:
                continue  # it answers an earlier fetch: this one asks for no body before the probe
            if reply.group:
                self._withdraw(transfer.lane, ask)
            if not reply.from_pool:
                self._backlogs.report(block.home, reply.backlog_ms / 1000, now_s)
            transfer.missing -= part
            if reply.found:
                self._settle(transfer.lane, reply, now_s)
                self._take(transfer, reply)
            else:
                transfer.lane.in_flight -= ask.fragments
                self._not_found(transfer, ask.part)
        self._pump()

    def acknowledged(self, put: Put) -> None:
        """Note that a block is at its home."""
        block = put.block
        self._puts_active.discard(block.key)
        lane = self._puts[block.home]
        lane.settle(put.fragments, self._loop.now, 0.0)
        if self._waiting_puts:
            self._start_puts()
        if lane.waiting:
            self._pump_puts(lane)

    def _told(self, told: Told, now_s: float) -> None:
        block = told.ask.block
        backlog_ms = None if told.from_pool else told.backlog_ms
        self._lanes.questions(block.home).settle(told.ask.fragments, now_s, backlog_ms)
        source = "pool" if told.from_pool else "remote"
        for prefix, place in self._questions.pop(block.key, ()):
            if told.held:
                prefix.arrived(place, source)
            else:
                prefix.ends(place)

    def _withdraw(self, lane: Lane[Ask], pushed: Ask) -> None:
        """Drop the waiting request that pushed parts answer; it counts as sent, as the caller settles it."""
        for ask in lane.waiting:
            if ask.block is pushed.block and ask.part == pushed.part:
                lane.waiting.remove(ask)
                lane.in_flight += ask.fragments  # settling the reply subtracts them again
                return

    def _settle(self, lane: Lane[Ask], reply: Reply, now_s: float) -> None:
        """Settle a reply in its lane, as hostlib.client.exchange does.

        The pool's own lane has no backlog. In a home's lane, an answer from the pool says nothing about the
        home's backlog.
        """
        fragments = reply.ask.fragments
        if self._lanes.is_pool(lane):
            lane.settle(fragments, now_s, 0.0)
        else:
            lane.settle(fragments, now_s, None if reply.from_pool else reply.backlog_ms, reply.merged)

    def _take(self, transfer: _Transfer, reply: Reply) -> None:
        ask, block = reply.ask, transfer.block
        transfer.fragments += ask.fragments
        if reply.from_pool:
            transfer.pool_fragments += ask.fragments
        if ask.part == PROBE:  # the probe's source has the rest, too
            transfer.lane = self._lanes.pool if reply.from_pool else self._lanes.bodies(block.home)
            waiting, parts = transfer.lane.waiting, block.parts
            for part in range(1, len(parts)):
                waiting.append(Ask(block, part, parts[part], self.name, ask.chain_blocks))
        if not transfer.missing:
            del self._transfers[block.key]
            self.get_s.append(self._loop.now - transfer.begun_s)
            source = "pool" if 2 * transfer.pool_fragments > transfer.fragments else "remote"
            for chain, place in transfer.chains:
                chain.arrived(place, source)
            transfer.chains.clear()

    def _not_found(self, transfer: _Transfer, part: int) -> None:
        """End every chain before this block, which nobody holds."""
        del self._transfers[transfer.block.key]
        if part != PROBE:  # its home has dropped it: stop waiting for the rest of the body
            self._abandon({transfer.block.key: transfer})
        for chain, place in transfer.chains:
            if place < chain.length:
                self._cut(chain, place)
                chain.check()
        transfer.chains.clear()

    def _cut(self, chain: ChainFetch, length: int) -> None:
        """Shorten a chain and abandon the blocks behind its new end that nobody else wants."""
        abandoned: dict[bytes, _Transfer] = {}
        for transfer in chain.transfers[length + 1 : chain.length]:
            waiting = transfer.chains
            if len(waiting) == 1 and waiting[0][0] is chain:
                waiting.clear()
            else:
                waiting[:] = [entry for entry in waiting if entry[0] is not chain]
            key = transfer.block.key
            if not waiting and self._transfers.get(key) is transfer:
                del self._transfers[key]
                abandoned[key] = transfer
        if abandoned:
            self._abandon(abandoned)
        chain.length = length

    def _abandon(self, transfers: dict[bytes, _Transfer]) -> None:
        """Drop the waiting requests for these blocks; those in flight no longer count, and their replies are
        ignored."""
        lanes = {id(transfer.lane): transfer.lane for transfer in transfers.values()}
        for lane in lanes.values():
            kept = deque[Ask]()
            for ask in lane.waiting:
                if ask.block.key in transfers:
                    lane.in_flight += ask.fragments  # the loop below subtracts them again
                else:
                    kept.append(ask)
            lane.waiting = kept
        for transfer in transfers.values():
            missing, parts = transfer.missing, transfer.block.parts
            if missing & 1 << PROBE:  # the body is requested once the probe has come
                transfer.lane.in_flight -= parts[PROBE]
            else:
                asked = [count for part, count in enumerate(parts) if missing >> part & 1]
                transfer.lane.in_flight -= sum(asked)

    def _pump(self) -> None:
        now_s = self._loop.now
        asks = self._lanes.take(now_s)
        if asks:
            for ask in asks:
                if ask.part == PROBE:
                    transfer = self._transfers.get(ask.block.key)
                    # None: a reply to an earlier request ended the transfer while this request waited.
                    if transfer is not None and transfer.missing & 1 << PROBE:
                        transfer.begun_s = now_s
            self._port.ask(asks)

    def _start_puts(self) -> None:
        waiting, active, workers = self._waiting_puts, self._puts_active, self._options.put_workers
        while waiting and len(active) < workers:
            block = waiting.popleft()
            if block.key in active:
                continue
            active.add(block.key)
            lane = self._puts.get(block.home)
            if lane is None:
                lane = self._puts[block.home] = Lane(self._options.lane)
            lane.waiting.append(Put(block, block.fragments, self.name))
            self._pump_puts(lane)

    def _pump_puts(self, lane: Lane[Put]) -> None:
        if lane.in_flight >= lane.allowed:
            return
        before_held = self._options.before_held
        for put in lane.waiting:
            if put.block.at_home != NOWHERE:
                put.fragments = min(put.block.fragments, before_held)
        for put in lane.take(self._loop.now):
            self._network.put(self.name, put)
