"""What moves the fragments of a client: sends requests within windows, matches replies, finishes transfers.

Replies are matched by key and fragment, not by sequence: a switch may answer with a copy of the reply to
another node. Nothing waits for ever: a fragment has a deadline (`hostlib.lane`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hostlib import wire
from hostlib.errors import (
    BlockNotFoundError,
    ChecksumError,
    CorruptBlockError,
    MalformedError,
    OverloadedError,
    TransferError,
    TransferTimeoutError,
)
from hostlib.gate import Backlogs
from hostlib.homes import home_of
from hostlib.lane import Lane, LaneOptions, Request
from hostlib.pushed import PushedBlocks
from hostlib.transfer import BlockRef, Get, Put
from hostlib.transport import Transport

Transfer = Get | Put


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Bounds of a client."""

    lane: LaneOptions = field(default_factory=LaneOptions)
    tick_s: float = 0.02
    """How often timeouts are looked for while anything is in flight."""
    max_transfers: int = 4096
    """Blocks in transfer at once; more are refused with OverloadedError."""
    corrupt_limit: int = 3
    """Wrong values of one block after which it is given up."""
    latencies_kept: int = 200_000


@dataclass(slots=True)
class ClientStats:
    """What a client saw. Fragments unless the name says blocks."""

    blocks_fetched: int = 0
    blocks_put: int = 0
    blocks_joined: int = 0
    """Wanted while another task of this node was already fetching them."""
    not_found: int = 0
    timeouts: int = 0
    """Blocks given up after their deadline."""
    overloaded: int = 0
    """Blocks refused because the queue was full."""
    corrupt: int = 0
    """Values that failed their end-to-end check (a fragment's checksum or a block's content)."""
    corrupt_blocks: int = 0
    """Blocks given up because they were wrong past the pool too."""
    from_pool: int = 0
    from_home: int = 0
    merged: int = 0
    retransmits: int = 0
    late: int = 0
    """Replies that nobody waits for (any more): duplicates, and answers to abandoned requests."""
    unexpected: int = 0
    """Well-formed messages that a client does not take."""
    malformed: dict[str, int] = field(default_factory=dict)
    """By reason."""


class Exchange:
    """Transfers in progress, by key. A transfer's future is done when it is finished, failed or abandoned."""

    def __init__(
        self,
        transport: Transport,
        homes: Sequence[str],
        block_bytes: int,
        verify: Callable[[bytes, bytes], bool],
        options: ClientOptions,
        pushed: PushedBlocks | None = None,
    ) -> None:
        self.stats = ClientStats()
        self.gets: dict[bytes, Get] = {}
        self.puts: dict[bytes, Put] = {}
        self.get_latencies_s: deque[float] = deque(maxlen=options.latencies_kept)
        self.backlogs = Backlogs()
        self._options = options
        self._transport = transport
        self._homes = tuple(homes)
        self._block_bytes = block_bytes
        self._verify = verify
        self._pushed = pushed
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[tuple[str, int], Lane[Transfer]] = {}
        self._sequence = 0
        self._pump_due = False
        self._tick: asyncio.TimerHandle | None = None
        transport.set_receiver(self._on_datagrams)

    def open_get(self, block: BlockRef) -> Get:
        """Ask for the probe of a block that is not in transfer; OverloadedError where there are too many."""
        self._check_room(block.key)
        lane = self._lane(block.key, wire.OP_GET)
        transfer = self.gets[block.key] = Get(block, lane, self._block_bytes, self._new_future())
        if self._pushed is not None and self._pushed.asks(block, self._loop.time()):
            transfer.requests[0].flags |= wire.FLAG_SUBSCRIBE
        self._ask(lane, transfer.requests[:1])
        return transfer

    def open_put(self, block: BlockRef, content: bytes) -> Put:
        """Offer a block that is not in transfer to its home; OverloadedError where there are too many."""
        self._check_room(block.key)
        lane = self._lane(block.key, wire.OP_PUT)
        transfer = self.puts[block.key] = Put(block, lane, content, self._new_future())
        self._ask(lane, transfer.requests)
        return transfer

    def ask_body(self, transfer: Get) -> None:
        """Ask for what is behind the probe, unless that happened already."""
        if not transfer.body_asked:
            transfer.body_asked = True
            self._ask(transfer.lane, transfer.requests[1:])

    def abandon(self, transfer: Transfer) -> None:
        """Nobody wants the transfer any more; its awaiters, if any, are cancelled."""
        if not transfer.future.done():
            self._forget(transfer)
            transfer.future.cancel()

    def close(self) -> None:
        """Abandon all transfers."""
        if self._tick:
            self._tick.cancel()
        transfers: list[Transfer] = [*self.gets.values(), *self.puts.values()]
        for transfer in transfers:
            self.abandon(transfer)

    def _forget(self, transfer: Transfer) -> None:
        for request in transfer.requests:
            transfer.lane.drop(request)
        if isinstance(transfer, Get):
            del self.gets[transfer.block.key]
        else:
            del self.puts[transfer.block.key]

    def _fail(self, transfer: Transfer, error: TransferError) -> None:
        self._forget(transfer)
        transfer.future.set_exception(error)

    def _new_future(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        # Failures count in the statistics; an awaiter that was cancelled meanwhile need not look at them.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    def _check_room(self, key: bytes) -> None:
        if len(self.gets) + len(self.puts) >= self._options.max_transfers:
            self.stats.overloaded += 1
            raise OverloadedError(key, f"{self._options.max_transfers} blocks are in transfer already")

    def _lane(self, key: bytes, op: int) -> Lane[Transfer]:
        home = home_of(key, self._homes)
        lane = self._lanes.get((home, op))
        if lane is None:
            lane = self._lanes[home, op] = Lane(home, self._options.lane)
        return lane

    def _ask(self, lane: Lane[Transfer], requests: Sequence[Request[Transfer]]) -> None:
        lane.add(requests)
        self._pump_soon()

    def _pump_soon(self) -> None:
        """Send once for all that is asked for in this turn of the loop: bursts are cheap, packets are not."""
        if not self._pump_due:
            self._pump_due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_due = False
        now_s = self._loop.time()
        busy = False
        for lane in self._lanes.values():
            requests = lane.take(now_s)
            if requests:
                self._transport.send(lane.home, [self._encode(request, now_s) for request in requests])
            busy = busy or lane.busy
        if busy and self._tick is None:
            self._tick = self._loop.call_later(self._options.tick_s, self._on_tick)

    def _encode(self, request: Request[Transfer], now_s: float) -> bytes:
        transfer = request.owner
        if isinstance(transfer, Get) and not transfer.started_s:
            transfer.started_s = now_s
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        return wire.encode(transfer.message(request, self._sequence))

    def _on_tick(self) -> None:
        self._tick = None
        now_s = self._loop.time()
        for lane in self._lanes.values():
            retried, dead = lane.expire(now_s)
            self.stats.retransmits += len(retried)
            for request in dead:
                if not request.owner.future.done():
                    self.stats.timeouts += 1
                    self._fail(
                        request.owner, TransferTimeoutError(request.owner.block.key, "no answer in time")
                    )
        self._pump()

    def _on_datagrams(self, address: str, datagrams: Sequence[wire.Buffer]) -> None:
        now_s = self._loop.time()
        for datagram in datagrams:
            try:
                message = wire.decode(datagram)
            except ChecksumError as error:
                self._on_corrupt(error.message)
                continue
            except MalformedError as error:
                self._count_malformed(error.reason)
                continue
            if message.op == wire.OP_VALUE:
                self._on_value(message, now_s)
            elif message.op == wire.OP_NOT_FOUND:
                self._on_not_found(message, now_s)
            elif message.op == wire.OP_PUT_ACK:
                self._on_put_ack(message, now_s)
            else:
                self.stats.unexpected += 1
        self._pump_soon()

    def _awaited_get(self, message: wire.Message) -> tuple[Get, Request[Transfer]] | None:
        """The request that a reply answers; a request past the pool takes only a reply from past the pool."""
        transfer = self.gets.get(message.key)
        if transfer is not None and message.fragment < len(transfer.requests):
            request = transfer.requests[message.fragment]
            if not request.done and not request.flags & wire.FLAG_BYPASS & ~message.flags:
                return transfer, request
        self.stats.late += 1
        return None

    def _on_value(self, message: wire.Message, now_s: float) -> None:
        if self._pushed is not None and message.flags & wire.FLAG_PUSHED and message.key not in self.gets:
            self._pushed.offer(message)
            return
        awaited = self._awaited_get(message)
        if awaited is None:
            return
        transfer, request = awaited
        if not transfer.fits(message):
            self._refetch(transfer, request)
            return
        from_pool = bool(message.flags & wire.FLAG_FROM_POOL)
        if from_pool:
            self.stats.from_pool += 1
        else:
            self.stats.from_home += 1
            self.backlogs.report(transfer.lane.home, message.hint_ms / 1000, now_s)
        merged = bool(message.flags & wire.FLAG_MERGED)
        self.stats.merged += merged
        transfer.lane.settle(request, now_s, None if from_pool else message.hint_ms, merged)
        transfer.store(message)
        if not transfer.missing:
            self._finish_get(transfer, now_s)
        elif not transfer.body_asked:
            self.ask_body(transfer)

    def _finish_get(self, transfer: Get, now_s: float) -> None:
        block = transfer.result(now_s)
        if not self._verify(block.key, block.content):
            if self._is_hopeless(transfer):
                return
            transfer.restart(wire.FLAG_BYPASS)
            self._ask(transfer.lane, transfer.requests[:1])
            return
        self.stats.blocks_fetched += 1
        self.get_latencies_s.append(block.elapsed_s)
        self._forget(transfer)
        transfer.future.set_result(block)

    def _on_corrupt(self, message: wire.Message) -> None:
        """A wrong checksum: trust nothing in the message, but ask for what it claims to be past the pool."""
        if message.op != wire.OP_VALUE:
            self._count_malformed("checksum")
            return
        awaited = self._awaited_get(message)
        if awaited is not None:
            self._refetch(*awaited)

    def _refetch(self, transfer: Get, request: Request[Transfer]) -> None:
        if not self._is_hopeless(transfer):
            request.flags |= wire.FLAG_BYPASS
            transfer.lane.again(request)

    def _is_hopeless(self, transfer: Get) -> bool:
        """Count a wrong value; the block is given up where there were too many."""
        self.stats.corrupt += 1
        transfer.corrupt += 1
        if transfer.corrupt <= self._options.corrupt_limit:
            return False
        self.stats.corrupt_blocks += 1
        self._fail(transfer, CorruptBlockError(transfer.block.key, f"wrong {transfer.corrupt} times"))
        return True

    def _on_not_found(self, message: wire.Message, now_s: float) -> None:
        awaited = self._awaited_get(message)
        if awaited is not None:
            transfer = awaited[0]
            self.stats.not_found += 1
            self.backlogs.report(transfer.lane.home, message.hint_ms / 1000, now_s)
            self._fail(transfer, BlockNotFoundError(message.key, f"not at its home {transfer.lane.home}"))

    def _on_put_ack(self, message: wire.Message, now_s: float) -> None:
        transfer = self.puts.get(message.key)
        if transfer is None or message.fragments != len(transfer.requests):
            self.stats.late += 1
            return
        request = transfer.requests[message.fragment]
        if request.done:
            self.stats.late += 1
            return
        transfer.lane.settle(request, now_s, backlog_ms=0)  # what waits to leave a home delays no PUT
        transfer.missing -= 1
        if not transfer.missing:
            self.stats.blocks_put += 1
            self._forget(transfer)
            transfer.future.set_result(None)

    def _count_malformed(self, reason: str) -> None:
        self.stats.malformed[reason] = self.stats.malformed.get(reason, 0) + 1
