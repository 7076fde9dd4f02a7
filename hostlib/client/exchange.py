"""Exchange of a client's packets: it sends requests within windows, hands replies on, and watches the homes.

A request belongs to a `RequestOwner` (`hostlib.client.request_owner`): a block being fetched
(`hostlib.client.fetch`), offered to one home (`hostlib.client.offer`) or asked about
(`hostlib.client.lookup`). Nothing waits for ever: a fragment has a deadline (`hostlib.native.lane`), and so
has a whole transfer. What waits for a home that fell silent is told so (`hostlib.client.health`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Protocol

from hostlib import native
from hostlib.client.backlogs import Backlogs
from hostlib.client.client_options import ClientOptions, ClientStats
from hostlib.client.health import Health
from hostlib.client.node_window import NodeWindow
from hostlib.client.request_owner import Encoder, Handler, RequestOwner, Taker
from hostlib.native.lane import POOL, Lane, Request, RoundTrips
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError, TransferError
from hostlib.protocol.members import Members, Refused, State, hello, is_later_in_message, other_size
from hostlib.protocol.transfer import BlockRef
from hostlib.transport.timer import Timer
from hostlib.transport.transport import Transport

log = logging.getLogger(__name__)

HELLO_EVERY_S = 1.0
OVERDUE_LOOK_S = 1.0
"""Seconds between looks for transfers that have taken longer than they may."""


class Asked(Protocol):
    """A read or a question: which storage nodes it goes by."""

    block: BlockRef
    homes: list[str]
    silent_home: bool
    busy: set[str]
    listed: int
    asks_everyone: bool


class Exchange:
    """See the module."""

    def __init__(self, transport: Transport, members: Members, tenant: int, options: ClientOptions) -> None:
        self.stats = ClientStats()
        self.options = options
        self.backlogs = Backlogs()
        self.health = Health(members, options.health)
        self.handlers: dict[int, Handler] = {wire.OP_MEMBERS: self._on_members}
        """By operation; each is called for a well-formed message."""
        self.core = native.core()
        self.takers: dict[int, Taker] = {}
        """By operation: asked for a run before a datagram is decoded."""
        self.encoders: dict[int, Encoder] = {}
        """By kind of lane: asked for a run before the owner of a request encodes it."""
        self.request_owners: dict[RequestOwner, None] = {}
        """Who is told of silent homes, in the order in which they began."""
        self.on_members: Callable[[], None] = lambda: None
        self.loop = asyncio.get_running_loop()
        self._transport = transport
        self._soon: Callable[[Callable[[], None]], object] = getattr(transport, "soon", self.loop.call_soon)
        self.tenant = tenant
        first = min(options.lane.initial_window, options.probe_window)
        self._probes = LaneOptions(
            initial_window=first,
            opened_window=options.probe_window,
            min_window=first,
            max_window=max(options.probe_window, options.lane.max_window // 4),
            deadline_s=options.lane.deadline_s,
        )
        self._node = NodeWindow(options.node)
        self._lanes: dict[tuple[str, int], Lane[Any]] = {}
        """By home and operation; the one that sent something last is the last."""
        self._trips: dict[str, RoundTrips] = {}
        self.numbers = wire.Numbers(self.loop.time)
        """They number what the client asks."""
        self._pump_due = False
        self._ticks = Timer(self.loop, self._on_tick)
        self._patience_s = max(
            options.tick_s,
            min(self.health.patience_s, options.lane.min_timeout_s, options.lane.max_timeout_s),
        )
        """For so long after a request was sent, `_on_tick` has nothing to say of it."""
        self._signs = Timer(self.loop, self._on_probe_time)
        self._hello_s = float("-inf")
        self._refused = Refused()
        self._disagreeing: set[str] = set()
        """Storage nodes whose last message named another list than this node's."""
        self._other_size = ""
        """Why nothing can be transferred, if the controller says that values have another size."""
        self._overdue_look_s = 0.0
        transport.set_receiver(self._on_datagrams)
        self.say_hello()

    @property
    def members(self) -> Members:
        """Return the newest list of storage nodes."""
        return self.health.members

    @property
    def disagrees(self) -> bool:
        """Return whether a storage node goes by another list than this node, which may thus ask the wrong
        homes."""
        return bool(self._disagreeing)

    def may_miss_deletions(self, home: str, epoch_byte: int) -> bool:
        """Return whether a storage node whose message has this `epoch` may not know yet that it was away: it
        is not up by this node's list, and goes by an earlier one. Then it may hold what was deleted
        meanwhile, if a deletion does not fail as soon as one home is down."""
        member = self.members.at(home)
        if member is None or member.state is State.UP or self.members.replicas == 1:
            return False
        return is_later_in_message(self.members.epoch, epoch_byte)

    def others_to_ask(self, asked: Asked) -> tuple[list[str], bool] | None:
        """Return whom else to ask about a block that nobody asked so far has; None if there is nobody.

        With that comes whether one that may hold it is left out. The list of storage nodes may have changed
        meanwhile, or theirs be another one.
        """
        if asked.block.homes:
            return None  # it is known who holds it
        if asked.listed != self.members.epoch and (asked.asks_everyone or not asked.silent_home):
            asked.asks_everyone = False
            return self.health.homes_of(asked.block)
        if self.disagrees and not asked.silent_home and not asked.asks_everyone:
            asked.asks_everyone = True
            return self.health.everyone(asked.block.key)
        return None

    def passes_busy(self, asked: Asked, home: str) -> bool:
        """Note that the home asked can't answer now. Return whether another is asked first, and this one
        again behind those that are left; else it is asked again after a while."""
        asked.busy.add(home)
        if all(other in asked.busy for other in asked.homes):
            return False
        asked.homes.append(home)
        return True

    def lane(self, home: str, op: int) -> Lane[Any]:
        """Return the lane of requests of one kind to one home: OP_STAT for probes, OP_GET for bodies,
        OP_PUT."""
        lane = self._lanes.get((home, op))
        if lane is None:
            options = self._probes if op == wire.OP_STAT else self.options.lane
            trips = self._trips.setdefault(home, self.core.RoundTrips())
            lane = self._lanes[home, op] = self.core.Lane(home, options, None if op == wire.OP_PUT else trips)
        return lane

    def ask(self, lane: Lane[Any], requests: Sequence[Request[Any]]) -> None:
        """Queue first transmissions."""
        lane.add(requests)
        self.pump_soon()

    def again(self, request: Request[Any]) -> None:
        """Send a request that was answered wrongly again, before all others, when all that came is taken."""
        assert request.lane is not None
        request.lane.again(request)

    def settle(self, request: Request[Any], message: wire.Message, now_s: float) -> None:
        """Settle a request that is answered."""
        self._node.answered()
        assert request.lane is not None
        from_pool = message.flags & wire.FLAG_FROM_POOL
        merged = bool(message.flags & wire.FLAG_MERGED)
        request.lane.settle(request, now_s, None if from_pool else message.backlog_ms, merged)

    def answered(self, fragments: int) -> None:
        """Count so many replies, which their lanes have settled."""
        self._node.answered(fragments)

    def drop(self, requests: Sequence[Request[Any]]) -> None:
        """Drop requests whose answers nobody wants any more."""
        self.core.drop(list(requests))

    def new_future(self, key: bytes) -> asyncio.Future[Any]:
        """Return the future of a block's transfer, see `fail`; TransferError if the network's values have
        another size."""
        if self._other_size:
            raise TransferError(key, self._other_size)
        return self.loop.create_future()

    def close(self) -> None:
        """Send nothing any more."""
        self._ticks.cancel()
        self._signs.cancel()

    def pump_soon(self) -> None:
        """Send once for all that is asked for in this turn of the loop: bursts are cheap, packets are not."""
        if not self._pump_due:
            self._pump_due = True
            self._soon(self._pump)

    def say_hello(self) -> None:
        """Ask the controller for the list of members: at the start, and when someone has another one. What is
        suspected of homes goes with it."""
        now_s = self.loop.time()
        controller = self.options.controller
        if controller is not None and now_s - self._hello_s >= HELLO_EVERY_S:
            self._hello_s = now_s
            message = hello(self.members, self.tenant, suspects=self.health.suspects)
            self._transport.send(controller, [wire.encode(message)])

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        """Send at once what no lane counts."""
        self._transport.send(address, datagrams)

    def tell_controller(self, messages: Iterable[bytes]) -> None:
        """Say something that nobody answers; without a controller nothing is said."""
        if self.options.controller is not None and (datagrams := list(messages)):
            self._transport.send(self.options.controller, datagrams)

    def _pump(self) -> None:
        self._pump_due = False
        now_s = self.loop.time()
        short = False
        waiting = [(name, lane) for name, lane in self._lanes.items() if lane.waits]
        gets = 0
        if waiting:
            gets = sum(lane.in_flight for (_, op), lane in self._lanes.items() if op != wire.OP_PUT)
        for name, lane in waiting:
            op = name[1]
            if op == wire.OP_PUT:
                requests = lane.take(now_s)
            else:
                room = self._node.room(gets)
                requests = lane.take(now_s, room)
                gets += len(requests)
                short = short or (len(requests) == room and lane.waits)
            if requests:
                self._lanes[name] = self._lanes.pop(name)
                self._transmit(lane, op, requests, now_s)
        self._node.limits(short)
        if not self._ticks.is_set and any(lane.busy for lane in self._lanes.values()):
            self._ticks.at_latest(now_s + self._patience_s)

    def _transmit(self, lane: Lane[Any], op: int, requests: list[Request[Any]], now_s: float) -> None:
        if lane.home != POOL:
            self._transport.send(lane.home, self._encode(op, requests, now_s))
            return
        bursts: dict[str, list[bytes]] = {}
        for address, some in groupby(requests, _address_of):
            bursts.setdefault(address, []).extend(self._encode(op, list(some), now_s))
        for address, datagrams in bursts.items():
            self._transport.send(address, datagrams)

    def _encode(self, op: int, requests: list[Request[Any]], now_s: float) -> list[bytes]:
        encoder = self.encoders.get(op)
        datagrams: list[bytes] = []
        while (at := len(datagrams)) < len(requests):
            first = self.numbers.next
            some = encoder(requests, at, first, now_s) if encoder is not None else []
            if not some:
                own = list(next(groupby(islice(requests, at, None), _owner_of))[1])
                some = own[0].owner.datagrams(own, first, now_s)
            self.numbers.take(len(some))
            datagrams += some
        return datagrams

    def _on_tick(self, late_s: float) -> None:
        now_s = self.loop.time()
        next_s = math.inf
        oldest_s: dict[str, float] = {}
        for (home, _), lane in list(self._lanes.items()):
            if not lane.in_flight:
                continue
            retried, dead = lane.expire(now_s)
            if retried:
                self._node.lost(now_s)
                self.stats.retransmits += len(retried)
            for request in retried:
                request.owner.retried(request)
            for request in dead:
                request.owner.gave_up(request)
            next_s = min(next_s, lane.earliest_timeout_s())
            if home == POOL:
                continue
            quiet_s = self.health.quiet_from_s(home)
            next_s = min(next_s, quiet_s)
            if quiet_s <= now_s and (since_s := lane.oldest_s()) is not None:
                oldest_s[home] = min(since_s, oldest_s.get(home, since_s))
        self._watch(oldest_s, now_s - late_s)  # for so long it is this process that did not listen
        if now_s >= self._overdue_look_s:
            self._overdue_look_s = now_s + OVERDUE_LOOK_S
            self._end_overdue(now_s)
        if next_s < math.inf:
            next_s = min(next_s, now_s + self._patience_s)  # for what is sent until then
            self._ticks.at_latest(max(next_s, now_s + self.options.tick_s))
        self._pump()

    def _end_overdue(self, now_s: float) -> None:
        """End transfers that have taken as long as they may: they wait for their turn in a lane, or a home
        gives little."""
        for owner in [owner for owner in self.request_owners if now_s >= owner.until_s]:
            owner.overdue()

    def _watch(self, oldest_s: dict[str, float], now_s: float) -> None:
        asked, dead = self.health.judge(oldest_s, lambda home: self.backlogs.wait_s(home, now_s), now_s)
        self._ask_for_signs(asked)
        for home in dead:
            self.stats.homes_suspected += 1
            for owner in list(self.request_owners):
                owner.silent(home)
        if dead:
            self._on_probe_time(0.0)

    def _on_probe_time(self, late_s: float) -> None:
        self._ask_for_signs(self.health.probes(self.loop.time()))
        if self.health.suspects:
            self.say_hello()
        due_s = self.health.next_probe_s()
        if due_s is not None:
            self._signs.at_latest(due_s)

    def seek(self, homes: Iterable[str]) -> None:
        """Ask suspected homes for a sign of life, because a transfer waits for one of them."""
        self._ask_for_signs(self.health.seek(homes, self.loop.time()))

    def _ask_for_signs(self, homes: Sequence[str]) -> None:
        """Ask homes for a sign of life: a STAT of no block is answered at once, whatever waits there.

        No pool may answer it, in case somebody has put a block under that key.
        """
        sign = wire.Message(wire.OP_STAT, bytes(wire.KEY_BYTES), 0, 0, wire.FLAG_BYPASS, tenant=self.tenant)
        for home in homes:
            self._transport.send(home, [wire.encode(sign)])

    def _on_datagrams(self, address: str, datagrams: Sequence[wire.Buffer]) -> None:
        now_s = self.loop.time()
        heard = False
        handlers, takers = self.handlers, self.takers
        at, total = 0, len(datagrams)
        while at < total:
            taker = takers.get(wire.op_of(datagrams[at])) if takers else None
            taken = taker(datagrams, at, address, now_s) if taker is not None else None
            if taken is not None:
                at += taken.datagrams
                if taken.heard:
                    heard = True
                    self._compare_lists(address, taken.epoch)
                continue
            at += 1
            try:
                message = wire.decode(datagrams[at - 1], trusting_values=True)
            except MalformedError as error:
                self._count_malformed(error.reason)
                continue
            handler = handlers.get(message.op)
            if handler is None:
                self.stats.unexpected += 1
                continue
            if not message.flags & wire.FLAG_FROM_POOL:
                heard = True
                self._compare_lists(address, message.epoch)
            handler(message, address, now_s)
        if heard:
            self.health.heard(address, now_s)
        self.pump_soon()

    def _compare_lists(self, address: str, epoch_byte: int) -> None:
        """Note whether a host goes by another list, and ask for the newest one."""
        if epoch_byte == self.members.epoch & 0xFF:
            self._disagreeing.discard(address)
            return
        if self.members.at(address) is not None:
            self._disagreeing.add(address)
        if self.members.is_another(epoch_byte):
            self.say_hello()

    def _on_members(self, message: wire.Message, address: str, now_s: float) -> None:
        if why := other_size(message):
            if not self._other_size:
                log.error("the pool is not used: %s", why)
            self._other_size = why
            self._count_malformed("size")
            return
        self._other_size = ""
        try:
            members = Members.decode(message.value)
        except MalformedError as error:
            self._count_malformed(error.reason)
            return
        if not self._refused.takes(members.epoch, self.members.epoch, now_s):
            if members.epoch != self.members.epoch:
                self.say_hello()
            return
        fallen = [
            one.address
            for one in members.nodes
            if one.state is State.DOWN and not self.members.is_down(one.address)
        ]
        self.health.members = members
        self._disagreeing.clear()
        for home in fallen:
            for owner in list(self.request_owners):
                owner.fallen(home)
        self.on_members()

    def _count_malformed(self, reason: str) -> None:
        self.stats.malformed[reason] = self.stats.malformed.get(reason, 0) + 1


_owner_of = attrgetter("owner")


def _address_of(request: Request[Any]) -> str:
    """Return where a fetch's request goes that a pool is to answer."""
    address: str = request.owner.homes[0]
    return address


def fail(future: asyncio.Future[Any], error: TransferError) -> None:
    """Finish a transfer with an error, unless it is finished.

    Failures count in the statistics; an awaiter that was cancelled meanwhile need not look at them.
    """
    if not future.done():
        future.set_exception(error)
        future.exception()
