"""Fetches: blocks being put together from fragments that are asked for one by one.

Fragment 0 is a block's probe. It is asked for without knowing the block's length or which write of it there
is; its value says both, and from then on only fragments of that write are taken. A fragment counts when its
tag is right. One whose tag is wrong is asked for again past the pool, with a report if it came from there. A
home that is silent is left for the next replica; a replica that lacks a fragment is left for the next, from
the probe on.

Replies are matched by key, fragment and content id, not by sequence: a switch may answer with a copy of the
reply to another node.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hostlib.client.client_options import RateLimit
from hostlib.client.exchange import Exchange, fail
from hostlib.client.fetch import Fetch
from hostlib.client.request_owner import Taken
from hostlib.native import COMPLETE, LEARNED
from hostlib.native.lane import POOL, Request
from hostlib.protocol import wire
from hostlib.protocol.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    CorruptBlockError,
    OverloadedError,
    TransferError,
    TransferTimeoutError,
)
from hostlib.protocol.transfer import BlockRef, FetchedBlock

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from hostlib.client.pushed import PushedBlocks
    from hostlib.protocol.seal import Seal

BLACKOUT_LOOK_S = 0.05
"""Seconds between two looks of a read whose homes all fell silent whether one was heard again."""


class Fetches:
    """The fetches of a client, by key."""

    def __init__(
        self, exchange: Exchange, seal: Seal, pushed: PushedBlocks | None, latencies: deque[float]
    ) -> None:
        self.active: dict[bytes, Fetch] = {}
        self.stats = exchange.stats
        self.tenant = seal.tenant
        self.longest_s = exchange.options.longest_s
        self._seal = seal
        self._exchange = exchange
        self._pushed = pushed
        self._latencies_s = latencies
        self._reports = RateLimit(exchange.options.repairs_per_s)
        self.core = exchange.core
        exchange.handlers[wire.OP_VALUE] = self._on_value
        exchange.takers[wire.OP_VALUE] = partial(self._take_values, self.core.tag_state(seal.tag_key))
        exchange.encoders |= {wire.OP_STAT: self._encode, wire.OP_GET: self._encode}

    @property
    def epoch(self) -> int:
        """Return the epoch of the list of members, as messages carry it."""
        return self._exchange.members.epoch & 0xFF

    def open(self, block: BlockRef, target: memoryview | None = None) -> Fetch:
        """Ask for the probe of a block that is not being fetched; OverloadedError if there are too many."""
        if len(self.active) >= self._exchange.options.max_transfers:
            self.stats.overloaded += 1
            raise OverloadedError(block.key, f"{len(self.active)} blocks are being fetched already")
        now_s = self._exchange.loop.time()
        homes, silent = self._exchange.health.homes_of(block)
        fetch = Fetch(self, block, homes, silent, now_s, target, self._exchange.new_future(block.key))
        fetch.listed = self._exchange.members.epoch
        fetch.first_sequence = self._exchange.numbers.next
        self.active[block.key] = fetch
        if homes:
            self._start(fetch)
        else:
            self._nowhere(fetch)
        if fetch.requests and self._pushed is not None and self._pushed.asks(block, now_s):
            fetch.requests[0].flags |= wire.FLAG_SUBSCRIBE
        return fetch

    def join(self, fetch: Fetch, block: BlockRef) -> None:
        """Join a fetch under way for another reader, which may not want the block of certain homes alone."""
        fetch.share()
        fetch.doubtful = fetch.doubtful or fetch.started_s is not None
        if fetch.block.homes in ((), block.homes):
            return
        homes, silent = self.homes_of(block)
        fetch.block, fetch.listed = block, self._exchange.members.epoch
        fetch.homes += [home for home in homes if home not in fetch.homes]
        fetch.silent_home = fetch.silent_home or silent

    def ask_at_home(self, fetch: Fetch, old: Request[Fetch]) -> None:
        """Ask for the same fragment at the home instead of the pool."""
        self._exchange.drop([old])
        again = self.core.Request(fetch, old.fragment, old.flags, tries=old.tries)
        again.first_sent_s = old.first_sent_s
        fetch.requests[old.fragment] = again
        self._exchange.ask(self._exchange.lane(fetch.homes[0], wire.OP_GET), [again])

    def fail_over(self, fetch: Fetch) -> None:
        """Ask the next home for what is missing, of the same write: the home asked is silent."""
        fetch.silent_home = True
        self.go_on(fetch)

    def homes_of(self, block: BlockRef) -> tuple[list[str], bool]:
        """See Keeper."""
        return self._exchange.health.homes_of(block)

    def go_on(self, fetch: Fetch) -> None:
        """Leave the home asked for the next."""
        fetch.homes.pop(0)
        if not fetch.homes:
            self._nowhere(fetch)
            return
        self.stats.failovers += 1
        missing = [request for request in fetch.requests if not request.done]
        self._exchange.drop(missing)
        home = fetch.homes[0]
        for old in missing:
            again = fetch.requests[old.fragment] = self.core.Request(fetch, old.fragment, old.flags)
            op = wire.OP_GET if fetch.content else wire.OP_STAT
            self._exchange.ask(self._exchange.lane(home, op), [again])

    def time_out(self, fetch: Fetch, why: str) -> None:
        """End a fetch that no home gave in time."""
        self.stats.timeouts += 1
        self.finish(fetch, TransferTimeoutError(fetch.block.key, why))

    def finish(self, fetch: Fetch, error: TransferError | None = None) -> None:
        """End a fetch with an error, or (None) cancelled: nobody wants it any more."""
        if self.active.get(fetch.block.key) is fetch:
            del self.active[fetch.block.key]
        self._exchange.request_owners.pop(fetch, None)
        self._exchange.drop(fetch.requests)
        if error is not None:
            fail(fetch.future, error)
        elif not fetch.future.done():
            fetch.future.cancel()
        for watcher in fetch.watchers:
            self._exchange.loop.call_soon(watcher, fetch)

    def on_not_found(self, message: wire.Message, address: str, now_s: float) -> None:
        """Go on without the home asked, which lacks the block, or that write of it."""
        fetch = self._asked_there(message, address)
        if fetch is not None:
            self._exchange.backlogs.report(address, message.backlog_ms / 1000, now_s)
            self._lacks(fetch, message)

    def on_refused(self, message: wire.Message, address: str, now_s: float) -> None:
        """Go on without a home that can't give the block, for good or for now.

        A home that is busy, or does not know yet what was deleted, is asked again after a while, and behind
        those that were not busy. All other reasons are of PUTs and deletions.
        """
        fetch = self._asked_there(message, address)
        if fetch is None:
            return
        if message.generation == wire.REFUSED_BUSY:
            self._busy(fetch, address)
        elif message.generation == wire.REFUSED_UNREADABLE:
            self.stats.refused += 1
            self._lacks(fetch, message)

    def _lacks(self, fetch: Fetch, message: wire.Message) -> None:
        """Go on without the home asked, which has nothing to give, if it says so to what is asked now."""
        is_of_before = wire.is_of_before(message, fetch.first_sequence)
        if is_of_before and fetch.flags & wire.FLAG_BYPASS:
            self.stats.late += 1  # nobody answers what is asked past the pool but who is asked
            return
        is_merged = bool(message.flags & wire.FLAG_MERGED)
        fetch.doubtful = fetch.doubtful or is_of_before or (fetch.certain and is_merged)
        self._next_home(fetch)

    def _busy(self, fetch: Fetch, home: str) -> None:
        """Ask another home, or this one after a while: it can't give the block now."""
        if home == fetch.homes[0] and self._exchange.passes_busy(fetch, home):
            self.go_on(fetch)

    def _start(self, fetch: Fetch) -> None:
        """Start a fetch from the probe, knowing nothing."""
        self._exchange.request_owners[fetch] = None
        if fetch.requests:
            self._exchange.drop(fetch.requests)
        fetch.content = fetch.fragments = fetch.length = 0
        fetch.template = None
        fetch.asked_epoch = -1
        fetch.pool_fragments = fetch.merged_fragments = 0
        fetch.missing = 1
        fetch.requests = [self.core.Request(fetch, 0)]
        self._exchange.ask(self._exchange.lane(fetch.homes[0], wire.OP_STAT), fetch.requests)

    def _next_home(self, fetch: Fetch) -> None:
        """Ask the next home: the one asked does not have what was asked for."""
        if not fetch.content:  # not even the block
            fetch.homes.pop(0)
            if not fetch.homes:
                self._nowhere(fetch)
                return
        else:  # another write of it, perhaps: what has arrived is of no use there
            fetch.restarts += 1
            if fetch.restarts > 2 * len(fetch.homes):
                if fetch.doubtful:
                    fetch.restarts = 0
                    self._once_more(fetch, *self.homes_of(fetch.block))
                else:
                    self.stats.not_found += 1
                    why = "no home holds one whole write of it"
                    self.finish(fetch, BlockNotFoundError(fetch.block.key, why))
                return
            fetch.homes.append(fetch.homes.pop(0))
            fetch.flags |= wire.FLAG_BYPASS
            if fetch.probe_from_pool and self._may_report():
                fetch.flags |= wire.FLAG_REPAIR
        self._start(fetch)

    def _nowhere(self, fetch: Fetch) -> None:
        key = fetch.block.key
        now_s = self._exchange.loop.time()
        if fetch.silent_home and self._exchange.health.in_blackout(key):
            if fetch.waits_until_s is None:
                fetch.waits_until_s = now_s + self._exchange.options.blackout_s
            if now_s < fetch.waits_until_s:
                self._wait(fetch)
                return
        others = self._exchange.others_to_ask(fetch)
        if others is not None:
            self._once_more(fetch, *others)
        elif fetch.silent_home:
            self.time_out(fetch, "a home that may hold it does not answer")
        elif fetch.doubtful:
            self._once_more(fetch, *self.homes_of(fetch.block))
        else:
            self.stats.not_found += 1
            self.finish(fetch, BlockNotFoundError(key, "none of its homes holds it"))

    def _once_more(self, fetch: Fetch, homes: list[str], silent: bool) -> None:
        """Ask these homes, past what was asked before."""
        fetch.doubtful = False
        fetch.first_sequence = self._exchange.numbers.next
        fetch.flags |= wire.FLAG_BYPASS
        fetch.homes, fetch.silent_home = homes, silent
        fetch.busy.clear()
        fetch.listed = self._exchange.members.epoch
        if fetch.homes:
            self._start(fetch)
        else:
            self._nowhere(fetch)

    def _wait(self, fetch: Fetch) -> None:
        """Wait until any of its homes is heard again."""
        members = self._exchange.members
        fetch.homes = [home.address for home in members.order(fetch.block.key)[: members.replicas]]
        self._exchange.request_owners.pop(fetch, None)
        self._exchange.drop(fetch.requests)
        self._exchange.seek(fetch.homes)
        self._exchange.loop.call_later(BLACKOUT_LOOK_S, self._look_again, fetch)

    def _look_again(self, fetch: Fetch) -> None:
        if self.active.get(fetch.block.key) is not fetch:
            return
        homes, fetch.silent_home = self._exchange.health.homes_of(fetch.block)
        if homes:
            fetch.homes = homes
            self._start(fetch)
        else:
            self._nowhere(fetch)

    def _asked_there(self, message: wire.Message, address: str) -> Fetch | None:
        """Return the fetch under way whose request this reply echoes, past the pool or not; None if there is
        none."""
        fetch = self.active.get(message.key)
        if (
            fetch is not None
            and message.tenant == self.tenant
            and fetch.homes[0] == address
            and (message.content, message.fragments) == (fetch.content, fetch.fragments)
            and message.fragment < len(fetch.requests)
            and not fetch.requests[message.fragment].done
            and not fetch.flags & wire.FLAG_BYPASS & ~message.flags
        ):
            return fetch
        self.stats.late += 1
        return None

    def _awaited(self, message: wire.Message) -> tuple[Fetch, Request[Fetch]] | None:
        """Return the request that a value answers. A request past the pool takes only a reply from past the
        pool."""
        fetch = self.active.get(message.key)
        if fetch is not None and message.fragment < len(fetch.requests):
            request = fetch.requests[message.fragment]
            past = (fetch.flags | request.flags) & wire.FLAG_BYPASS
            if (
                not request.done
                and not past & ~message.flags
                and (
                    not fetch.content
                    or (fetch.content == message.content and fetch.fragments == message.fragments)
                )
            ):
                return fetch, request
        self.stats.late += 1
        return None

    def _on_value(self, message: wire.Message, address: str, now_s: float) -> None:
        if self._pushed is not None and message.flags & wire.FLAG_PUSHED and message.key not in self.active:
            self._pushed.offer(message)
            return
        awaited = self._awaited(message)
        if awaited is None:
            return
        fetch, request = awaited
        if not fetch.content and wire.is_of_before(message, fetch.first_sequence):
            # It may have been deleted since. A switch may have let this read wait for that answer, too.
            self.stats.late += 1
            if not request.flags & wire.FLAG_BYPASS:
                request.flags |= wire.FLAG_BYPASS
                self._exchange.again(request)
            return
        is_of_home = not message.flags & wire.FLAG_FROM_POOL
        if not fetch.content and is_of_home and self._exchange.may_miss_deletions(address, message.epoch):
            self._busy(fetch, address)
            return
        short = len(message.value) != wire.VALUE_BYTES and message.fragment + 1 != message.fragments
        if short or not self._seal.is_genuine(message):
            if address == fetch.homes[0]:
                self._refetch(fetch, request, message.flags, now_s)
            else:  # nobody asked that host; a pool answers as the home that was asked
                self.stats.late += 1
            return
        flags = message.flags
        if flags & wire.FLAG_FROM_POOL:
            self.stats.from_pool += 1
            fetch.pool_fragments += 1
        else:
            self.stats.from_home += 1
            self._exchange.backlogs.report(address, message.backlog_ms / 1000, now_s)
        if flags & wire.FLAG_MERGED:
            self.stats.merged += 1
            fetch.merged_fragments += 1
        self._exchange.settle(request, message, now_s)
        if fetch.content:
            if not fetch.place(message.fragment, message.value):
                self._too_long(fetch)
            elif not fetch.missing:
                self._complete(fetch, now_s)
        else:
            self._probed(fetch, address, message.fragments, message.content, message.value, flags, now_s)

    def _probed(
        self,
        fetch: Fetch,
        address: str,
        fragments: int,
        content: int,
        value: wire.Buffer,
        flags: int,
        now_s: float,
    ) -> None:
        """Take what the probe says: which write of the block there is, and how long it is."""
        if not fetch.learn(fragments, content, flags, now_s) or not fetch.place(0, value):
            self._too_long(fetch)
        elif not fetch.missing:
            self._complete(fetch, now_s)
        else:
            self._ask_body(fetch, address)

    def _take_values(
        self,
        tag_state: bytes,
        datagrams: Sequence[wire.Buffer],
        at: int,
        address: str,
        now_s: float,
    ) -> Taken | None:
        """Take a run of values that answer requests and are right, as `_on_value` takes each.

        The run ends before whatever else comes. What a probe says, and that a block is complete, is handled
        behind the run: nothing in it depends on that.
        """
        if self._exchange.may_miss_deletions(address, wire.epoch_of(datagrams[at])):
            return None
        run = self.core.take_values(datagrams, at, self.active, self.tenant, tag_state, now_s, self.epoch)
        if run is None:
            return None
        count, from_home, merged, epoch, backlog_ms, events = run
        stats = self.stats
        stats.from_pool += count - from_home
        stats.from_home += from_home
        stats.merged += merged
        if from_home:
            self._exchange.backlogs.report(address, backlog_ms / 1000, now_s)
        self._exchange.answered(count)
        bodies: dict[str, list[Request[Fetch]]] = {}
        for fetch, probe_at in events:
            if probe_at == COMPLETE:
                self._complete(fetch, now_s)
                continue
            if probe_at == LEARNED:
                bodies.setdefault(self._giver(fetch, address), []).extend(fetch.requests[1:])
                continue
            self._ask_bodies(bodies)
            probe = datagrams[probe_at]
            flags, fragments, value_bytes, content = wire.write_of(probe)
            value = probe[wire.KV_HEADER_BYTES : wire.KV_HEADER_BYTES + value_bytes]
            self._probed(fetch, address, fragments, content, value, flags, now_s)
        self._ask_bodies(bodies)
        return Taken(count, from_home > 0, epoch)

    def _ask_bodies(self, bodies: dict[str, list[Request[Fetch]]]) -> None:
        """Ask for bodies, given by home, or POOL."""
        for home, requests in bodies.items():
            self._exchange.ask(self._exchange.lane(home, wire.OP_GET), requests)
        bodies.clear()

    def _encode(self, requests: list[Request[Any]], at: int, sequence: int, now_s: float) -> list[bytes]:
        """Encode the GETs of the requests from index `at` on that belong to fetches."""
        return self.core.encode_gets(requests, at, Fetch, sequence, now_s, self.tenant, self.epoch)

    def _too_long(self, fetch: Fetch) -> None:
        why = f"{fetch.fragments} fragments do not fit a buffer of {len(fetch.buffer)} bytes"
        self.finish(fetch, BlockTooLongError(fetch.block.key, why))

    def _ask_body(self, fetch: Fetch, address: str) -> None:
        """Ask for the rest where the probe came from, which will have it, too."""
        lane = self._exchange.lane(self._giver(fetch, address), wire.OP_GET)
        self._exchange.ask(lane, fetch.requests[1:])

    def _giver(self, fetch: Fetch, address: str) -> str:
        """Return whom to ask for the rest: the pool, or the storage node that the probe came from, be it that
        another one was asked meanwhile."""
        if fetch.probe_from_pool:
            return POOL
        if self._exchange.members.at(address) is not None:
            fetch.homes = [address, *(home for home in fetch.homes if home != address)]
        return fetch.homes[0]

    def _complete(self, fetch: Fetch, now_s: float) -> None:
        key = fetch.block.key
        content = fetch.buffer[: fetch.length]
        times = fetch.times(now_s)
        fetch.fetched = block = FetchedBlock(
            key,
            bytes(content) if fetch.target is None else content,
            fetch.fragments,
            fetch.pool_fragments,
            fetch.merged_fragments,
            times,
        )
        self.stats.blocks_fetched += 1
        self._latencies_s.append(times.done_s - times.probe_sent_s)
        # They name the fetch, and it them: without this, all wait for the garbage collector, the buffer too.
        fetch.requests = []
        del self.active[key]
        self._exchange.request_owners.pop(fetch, None)
        if not fetch.future.done():
            fetch.future.set_result(block)
        for watcher in fetch.watchers:
            watcher(fetch)

    def _refetch(self, fetch: Fetch, request: Request[Fetch], flags: int, now_s: float) -> None:
        """Ask again for a wrong value: past the pool, and if it was wrong there, at the next home."""
        self.stats.corrupt += 1
        fetch.corrupt += 1
        if fetch.corrupt > self._exchange.options.corrupt_limit:
            self.stats.corrupt_blocks += 1
            why = f"damaged, or sealed with another secret: its tag was wrong {fetch.corrupt} times"
            self.finish(fetch, CorruptBlockError(fetch.block.key, why))
            return
        if flags & wire.FLAG_BYPASS and len(fetch.homes) > 1:
            fetch.flags |= wire.FLAG_BYPASS
            fetch.homes.append(fetch.homes.pop(0))
            self._start(fetch)
            return
        request.flags |= wire.FLAG_BYPASS
        if flags & wire.FLAG_FROM_POOL and self._may_report():
            request.flags |= wire.FLAG_REPAIR
        if request.lane is not None and request.lane.home == POOL:
            self.ask_at_home(fetch, request)
        else:
            self._exchange.again(request)

    def _may_report(self) -> bool:
        allowed = self._reports.allows(self._exchange.loop.time())
        self.stats.repairs += allowed
        return allowed
