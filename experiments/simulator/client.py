"""A node's way to the network: fetches chains of blocks and puts new ones, as hostlib.client does.

Probes of all blocks of a chain go first, a block's body when its probe has come; NOT_FOUND ends the chain. A
block is fetched once however many requests of the node want it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from experiments.simulator.cpu import Process
from experiments.simulator.events import Loop
from experiments.simulator.lane import Lane
from experiments.simulator.messages import PROBE, Ask, Block, Put, Reply, fragments_of
from experiments.simulator.network import Network
from hostlib.gate import Backlogs
from hostlib.lane import LaneOptions


@dataclass(slots=True)
class ClientStats:
    """Blocks."""

    fetched: int = 0
    joined: int = 0
    not_found: int = 0
    put: int = 0
    puts_skipped: int = 0


@dataclass(slots=True, eq=False)
class _Transfer:
    """One block being fetched."""

    block: Block
    missing: set[int]
    begun_s: float
    chains: list[tuple[ChainFetch, int]] = field(default_factory=list)
    fragments: int = 0
    pool_fragments: int = 0


class ChainFetch:
    """The longest available prefix of a chain, on its way."""

    def __init__(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        self.sources: dict[int, str] = {}
        """Where each block came from, by place: "pool" or "remote"."""
        self.length = len(blocks)
        """The chain as far as it can still be had."""
        self.transfers: list[_Transfer] = []
        self.ended = False
        self._whole = 0
        """Blocks from the first on that are there."""
        self._finished = finished

    def arrived(self, place: int, source: str) -> None:
        """A block is there."""
        self.sources[place] = source
        self.check()

    def check(self) -> None:
        """Report once everything that can be had is there."""
        while self._whole < self.length and self._whole in self.sources:
            self._whole += 1
        if not self.ended and self._whole >= self.length:
            self.ended = True
            self._finished([self.sources[place] for place in range(self.length)])


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Bounds, as hostlib.inference has them."""

    lane: LaneOptions = field(default_factory=LaneOptions)
    put_workers: int = 4
    max_waiting_puts: int = 1024
    fragment_s: float = 0.0
    """CPU time for each fragment that comes."""
    is_held: Callable[[Block], bool] = lambda block: False
    """Whether a block's home holds it by now. It says so at the first fragment of a PUT, which ends it."""
    before_held: int = 1
    """Fragments that have left by then."""


class Client:
    """See the module; a vertex of the network."""

    def __init__(
        self, loop: Loop, name: str, network: Network, options: ClientOptions, process: Process
    ) -> None:
        self.name = name
        self.stats = ClientStats()
        self.get_s: list[float] = []
        self._loop, self._network, self._options, self._process = loop, network, options, process
        self._switch = network.next_hop(name, network.fabric.switches[0])
        self._transfers: dict[bytes, _Transfer] = {}
        self._gets: dict[str, Lane[Ask]] = {}
        self._puts: dict[str, Lane[Put]] = {}
        self._waiting_puts: deque[Block] = deque()
        self._puts_active: set[bytes] = set()
        self._backlogs = Backlogs()

    def backlog_s(self, home: str) -> float:
        """What is left by now of the work that a home last said to wait there."""
        return self._backlogs.wait_s(home, self._loop.now)

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Fetch a chain; `finished` gets the source of each block of the prefix that could be had."""
        chain = ChainFetch(blocks, finished)
        chain_blocks = blocks[-1].depth + 1
        homes: dict[str, None] = {}
        for place, block in enumerate(blocks):
            transfer = self._transfers.get(block.key)
            if transfer is None:
                missing = set(range(len(block.parts)))
                transfer = self._transfers[block.key] = _Transfer(block, missing, self._loop.now)
                ask = Ask(block, PROBE, 1, self.name, chain_blocks)
                self._lane(block.home).waiting.append(ask)
                homes[block.home] = None
            else:
                self.stats.joined += 1
            transfer.chains.append((chain, place))
            chain.transfers.append(transfer)
        self._pump(homes)

    def store(self, blocks: Iterable[Block]) -> None:
        """Store new blocks at their homes, in the background."""
        for block in blocks:
            if len(self._waiting_puts) >= self._options.max_waiting_puts:
                self.stats.puts_skipped += 1
            else:
                self._waiting_puts.append(block)
        self._start_puts()

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """Nobody asks an inference node."""
        raise AssertionError("an inference node holds nothing for others")

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Replies have arrived in full."""
        if self._process.free:
            self._on_replies(replies)
        else:
            cost_s = fragments_of([reply.ask for reply in replies]) * self._options.fragment_s
            self._process.do(cost_s, self._on_replies, replies)

    def acknowledged(self, put: Put) -> None:
        """A block is at its home."""
        self._process.do(put.fragments * self._options.fragment_s, self._on_acknowledgements, put)

    def _on_replies(self, replies: Sequence[Reply]) -> None:
        homes: dict[str, None] = {}
        for reply in replies:
            block = reply.ask.block
            transfer = self._transfers.get(block.key)
            if transfer is None or reply.ask.part not in transfer.missing:
                continue
            homes[block.home] = None
            if not reply.from_pool:
                self._backlogs.report(block.home, reply.backlog_ms / 1000, self._loop.now)
            # As hostlib.exchange: neither a pool's answer nor NOT_FOUND says anything of the way to the home.
            backlog_ms = reply.backlog_ms if reply.found and not reply.from_pool else None
            self._lane(block.home).settle(reply.ask.fragments, self._loop.now, backlog_ms, reply.merged)
            transfer.missing.remove(reply.ask.part)
            if reply.found:
                self._take(transfer, reply)
            else:
                homes.update(self._not_found(transfer, reply.ask.part))
        self._pump(homes)

    def _on_acknowledgements(self, put: Put) -> None:
        self.stats.put += 1
        self._puts_active.discard(put.block.key)
        self._puts[put.block.home].settle(put.fragments, self._loop.now, 0.0)
        self._start_puts()
        self._pump_puts(put.block.home)

    def _take(self, transfer: _Transfer, reply: Reply) -> None:
        ask = reply.ask
        transfer.fragments += ask.fragments
        transfer.pool_fragments += ask.fragments if reply.from_pool else 0
        if ask.part == PROBE:
            lane = self._lane(transfer.block.home)
            for part, fragments in enumerate(transfer.block.parts[1:], 1):
                lane.waiting.append(Ask(transfer.block, part, fragments, self.name, ask.chain_blocks))
        if not transfer.missing:
            del self._transfers[transfer.block.key]
            self.stats.fetched += 1
            self.get_s.append(self._loop.now - transfer.begun_s)
            source = "pool" if 2 * transfer.pool_fragments > transfer.fragments else "remote"
            for chain, place in transfer.chains:
                chain.arrived(place, source)
            transfer.chains.clear()

    def _not_found(self, transfer: _Transfer, part: int) -> dict[str, None]:
        """The block is nowhere: every chain through it ends before it. The homes that this relieves."""
        del self._transfers[transfer.block.key]
        self.stats.not_found += 1
        if part != PROBE:  # its home dropped it meanwhile: the rest of the body is not waited for
            self._abandon(self._lane(transfer.block.home), {transfer.block.key: transfer})
        relieved: dict[str, None] = {}
        for chain, place in transfer.chains:
            if place < chain.length:
                relieved.update(self._cut(chain, place))
                chain.check()
        transfer.chains.clear()
        return relieved

    def _cut(self, chain: ChainFetch, length: int) -> dict[str, None]:
        """Shorten a chain; what nobody else wants behind its new end is abandoned."""
        abandoned: dict[str, dict[bytes, _Transfer]] = {}
        for transfer in chain.transfers[length + 1 : chain.length]:
            transfer.chains = [entry for entry in transfer.chains if entry[0] is not chain]
            if not transfer.chains and self._transfers.get(transfer.block.key) is transfer:
                del self._transfers[transfer.block.key]
                abandoned.setdefault(transfer.block.home, {})[transfer.block.key] = transfer
        for home, transfers in abandoned.items():
            self._abandon(self._lane(home), transfers)
        chain.length = length
        return dict.fromkeys(abandoned)

    def _abandon(self, lane: Lane[Ask], transfers: dict[bytes, _Transfer]) -> None:
        """What waits is not sent, what is in flight no longer counts, what comes is ignored."""
        waiting, kept = 0, deque[Ask]()
        for ask in lane.waiting:
            if ask.block.key in transfers:
                waiting += ask.fragments
            else:
                kept.append(ask)
        lane.waiting = kept
        for transfer in transfers.values():
            asked = (PROBE,) if PROBE in transfer.missing else transfer.missing
            lane.in_flight -= sum(transfer.block.parts[part] for part in asked)
        lane.in_flight += waiting

    def _lane(self, home: str) -> Lane[Ask]:
        lane = self._gets.get(home)
        if lane is None:
            lane = self._gets[home] = Lane(self._options.lane)
        return lane

    def _pump(self, homes: Iterable[str]) -> None:
        for home in homes:
            asks = list(self._lane(home).take(self._loop.now))
            if asks:
                self._network.ask(self.name, self._switch, asks)

    def _start_puts(self) -> None:
        while self._waiting_puts and len(self._puts_active) < self._options.put_workers:
            block = self._waiting_puts.popleft()
            if block.key in self._puts_active:
                continue
            self._puts_active.add(block.key)
            lane = self._puts.get(block.home)
            if lane is None:
                lane = self._puts[block.home] = Lane(self._options.lane)
            lane.waiting.append(Put(block, block.fragments, self.name))
            self._pump_puts(block.home)

    def _pump_puts(self, home: str) -> None:
        lane, options = self._puts[home], self._options
        for put in lane.waiting:
            if options.is_held(put.block):
                put.fragments = min(put.block.fragments, options.before_held)
        for put in lane.take(self._loop.now):
            self._network.put(self.name, put)
