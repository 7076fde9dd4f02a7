"""The offers of a client: its blocks that are being put to their homes (`hostlib.client.offer`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hostlib.client.exchange import Exchange, fail
from hostlib.client.offer import Leg, Offer
from hostlib.client.request_owner import Taken
from hostlib.protocol import wire
from hostlib.protocol.errors import OverloadedError, PutRefusedError, TransferError, TransferTimeoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.native.lane import Request
    from hostlib.protocol.members import Member
    from hostlib.protocol.seal import Seal
    from hostlib.protocol.transfer import BlockRef

SILENCE_LOOK_S = 0.25
"""Seconds between two looks of a PUT whether a silent home was heard again."""
ROUNDS = 4
"""Number of times that all of a block is offered to a home that loses parts of it."""
WHY = {
    wire.REFUSED_FULL: "there is no room on its disk",
    wire.REFUSED_QUOTA: "the tenant holds as much as it may",
    wire.REFUSED_LENGTH: "the fragments are not those of one block, or the block is too long",
    wire.REFUSED_CONTENT: "another write of it is there already",
    wire.REFUSED_UNREADABLE: "its disk gives errors",
    wire.REFUSED_DELETED: "it was deleted",
    wire.REFUSED_NOT_HOME: "by its list of storage nodes it is no home of the block",
}


class Offers:
    """The offers of a client, by key."""

    def __init__(self, exchange: Exchange, seal: Seal) -> None:
        self.active: dict[bytes, Offer] = {}
        self.stats = exchange.stats
        self._seal = seal
        self._exchange = exchange
        exchange.handlers[wire.OP_PUT_ACK] = self._on_ack
        exchange.on_members = self._on_members
        exchange.encoders[wire.OP_PUT] = partial(self._encode, exchange.core.tag_state(seal.tag_key))
        exchange.takers[wire.OP_PUT_ACK] = self._take_acks

    def open(
        self, block: BlockRef, content: memoryview, durable: bool, replicas: int, least: int, until_s: float
    ) -> Offer:
        """Offer a block that is not being offered, until then at most; a TransferError if that is no use."""
        if len(self.active) >= self._exchange.options.max_transfers:
            self.stats.overloaded += 1
            raise OverloadedError(block.key, f"{len(self.active)} blocks are being put already")
        members = self._exchange.members
        if replicas > members.replicas:
            self.stats.refused += 1
            why = f"homes asked for: {replicas}; the list of storage nodes has {members.replicas} a block"
            raise PutRefusedError(block.key, why)
        homes = members.homes(block.key, replicas)
        if len(homes) < replicas and (len(members.nodes) < replicas or not members.epoch):
            self.stats.refused += 1
            raise PutRefusedError(block.key, f"homes asked for: {replicas}, up: {len(homes)}")
        tags = [b""] * wire.fragment_count(len(content))
        offer = Offer(
            self,
            block,
            content,
            self._exchange.options.new_content(),
            durable,
            replicas,
            least,
            self._exchange.new_future(block.key),
            until_s,
            self._exchange.numbers.next,
            tags=tags,
        )
        for at, home in enumerate(homes):
            self._add_leg(offer, home, alone=bool(at) and not self._exchange.options.multicast)
        self.active[block.key] = offer
        for leg in tuple(offer.legs):
            if self._exchange.health.is_suspected(leg.member.address):
                self.silent(leg)
        if len(homes) < replicas:
            self._too_few(offer)
        self._ask(offer)
        return offer

    def encode(self, leg: Leg, request: Request[Leg], sequence: int, now_s: float) -> bytes:
        """Return a PUT; where it goes to several homes, it is in flight to all of them from now on."""
        offer, fragment = leg.offer, request.fragment
        head, others = self._head(leg, again=bool(request.tries))
        self._launch(others, [request], now_s)
        at = fragment * wire.VALUE_BYTES
        value = offer.content[at : at + wire.VALUE_BYTES]
        tag = offer.tags[fragment]
        if not tag:
            tag = offer.tags[fragment] = self._seal.tag(
                head.key, fragment, offer.fragments, offer.write, value
            )
        return wire.encode(head._replace(fragment=fragment, sequence=sequence, tag=tag, value=value))

    def _encode(
        self, tag_state: bytes, requests: list[Request[Leg]], at: int, sequence: int, now_s: float
    ) -> list[bytes]:
        """Encode a run of requests from index `at` on, as `encode` does.

        The run is of one leg; all of it is sent for the first time, or all of it again.
        """
        first = requests[at]
        offer = first.owner.offer
        head, others = self._head(first.owner, again=bool(first.tries))
        puts = self._exchange.core.encode_puts(
            requests, at, wire.encode(head), sequence, offer.content, offer.tags, tag_state
        )
        if puts:
            self._launch(others, requests[at : at + len(puts)], now_s)
        return puts

    def _head(self, leg: Leg, again: bool) -> tuple[wire.Message, list[Leg]]:
        """Return a PUT without what differs between fragments, and the other homes that it goes to."""
        offer = leg.offer
        flags = wire.FLAG_DURABLE if offer.durable else 0
        numbers = [0, 0, 0]
        others: list[Leg] = []
        if again or leg.alone:
            flags |= wire.FLAG_RETRY
        else:
            others = [other for other in offer.legs if other is not leg and not other.alone]
            if others:
                numbers[: len(others) + 1] = [one.member.number for one in (leg, *others)]
        block = offer.block
        return wire.Message(
            wire.OP_PUT, block.key, 0, offer.fragments, flags, depth=block.depth,
            chain_blocks=block.chain_blocks, parent=block.parent, tenant=self._seal.tenant,
            content=offer.write, homes=(numbers[0], numbers[1], numbers[2]),
            epoch=self._exchange.members.epoch & 0xFF,
        ), others  # fmt: skip

    def gave_up(self, offer: Offer, why: str) -> None:
        """End an offer of which a home did not answer."""
        if offer.future.done():
            return  # for another of its fragments, or of its homes
        self.stats.timeouts += 1
        self.finish(offer, TransferTimeoutError(offer.block.key, why))

    def silent(self, leg: Leg) -> None:
        """Wait for the next list of members, which may name another in place of a silent home.

        Without a controller there is no such list, and the other homes have to do, if they are enough.
        """
        offer = leg.offer
        why = f"{leg.member.address} does not answer"
        if not self._exchange.members.epoch:
            if offer.replicas > offer.least:
                self._leave_out(leg)
            else:
                self.gave_up(offer, why)
            return

        loop, options, health = self._exchange.loop, self._exchange.options, self._exchange.health
        began_s = loop.time()
        replaced_by_s = began_s + options.relist_s

        def look() -> None:
            nonlocal replaced_by_s
            if leg not in offer.legs or leg.held or not health.is_suspected(leg.member.address):
                return
            now_s = loop.time()
            is_dark = health.in_blackout(offer.block.key)
            if now_s >= (began_s + options.blackout_s if is_dark else replaced_by_s):
                self.gave_up(offer, why)
                return
            if is_dark:  # when it ends, homes are heard one after the other, and the list is of before
                replaced_by_s = now_s + options.relist_s
            if now_s >= began_s + options.relist_s:
                self._exchange.seek([leg.member.address])
            loop.call_later(SILENCE_LOOK_S, look)

        look()

    def finish(self, offer: Offer, error: TransferError | None = None) -> None:
        """End an offer with an error, or with None because it is done or nobody wants it any more."""
        if self.active.get(offer.block.key) is offer:
            del self.active[offer.block.key]
        for leg in offer.legs:
            self._exchange.drop(leg.requests)
            self._exchange.request_owners.pop(leg, None)
        if error is not None:
            fail(offer.future, error)
        elif not offer.future.done():
            offer.future.cancel()

    def on_refused(self, message: wire.Message, address: str, now_s: float) -> bool:
        """Take the answer of a home that can't keep the block: for good, or (offered again after a while) not
        now. Return whether it was ours."""
        offer = self.active.get(message.key)
        if offer is None or message.tenant != self._seal.tenant or message.content != offer.write:
            return False
        not_yet = message.generation == wire.REFUSED_BUSY or (
            message.generation == wire.REFUSED_NOT_HOME and self._exchange.members.epoch
        )  # one of the two does not know the newest list of members yet
        if not not_yet and any(leg.member.address == address for leg in offer.legs):
            self.stats.refused += 1
            why = WHY.get(message.generation, f"reason {message.generation}")
            error = PutRefusedError(message.key, f"{address} refuses it: {why}", message.generation)
            self.finish(offer, error)
        return True

    def _new_requests(self, leg: Leg) -> list[Request[Leg]]:
        return self._exchange.core.new_requests(leg, 0, leg.offer.fragments)

    def _add_leg(self, offer: Offer, home: Member, alone: bool) -> None:
        leg = Leg(offer, home, self._exchange.numbers.next, alone=alone)
        leg.requests = self._new_requests(leg)
        leg.missing = offer.fragments
        offer.legs.append(leg)
        self._exchange.request_owners[leg] = None

    def _ask(self, offer: Offer) -> None:
        """Ask the first home, whose packets carry those of the others."""
        for at, leg in enumerate(offer.legs):
            if not at or leg.alone:
                lane = self._exchange.lane(leg.member.address, wire.OP_PUT)
                self._exchange.ask(lane, [one for one in leg.requests if one.lane is None])

    def _launch(self, legs: Sequence[Leg], sent: Sequence[Request[Leg]], now_s: float) -> None:
        """Count the PUTs of these requests as in flight to these homes, too."""
        for leg in legs:
            if not leg.held:
                own = [leg.requests[request.fragment] for request in sent]
                self._exchange.lane(leg.member.address, wire.OP_PUT).launched(own, now_s)

    def _leave_out(self, leg: Leg) -> None:
        """Leave out a home that need not have the block."""
        offer = leg.offer
        offer.replicas -= 1
        offer.legs.remove(leg)
        self._exchange.drop(leg.requests)
        self._exchange.request_owners.pop(leg, None)
        if offer.held:
            self.stats.blocks_put += 1
            self.finish_held(offer)
            return
        for other in offer.legs:
            if not other.held and not other.alone:
                self._alone(other)

    def _too_few(self, offer: Offer) -> None:
        """Wait for the next list of members, which may have enough homes: a home that lost a few heartbeats
        is back soon."""

        def still() -> None:
            if self.active.get(offer.block.key) is offer and len(offer.legs) < offer.replicas:
                self.stats.refused += 1
                why = f"homes asked for: {offer.replicas}, up: {len(offer.legs)}"
                self.finish(offer, PutRefusedError(offer.block.key, why))

        self._exchange.loop.call_later(self._exchange.options.relist_s, still)

    def _alone(self, leg: Leg) -> None:
        """Send this home packets of its own from now on, for all that was not sent to it yet."""
        leg.alone = True
        lane = self._exchange.lane(leg.member.address, wire.OP_PUT)
        self._exchange.ask(lane, [one for one in leg.requests if one.lane is None and not one.done])

    def _leg(self, key: bytes, address: str) -> Leg | None:
        """Return what a home has to acknowledge of a block; None for nothing."""
        legs = self.active[key].legs if key in self.active else ()
        return next((leg for leg in legs if leg.member.address == address and not leg.held), None)

    def _on_ack(self, message: wire.Message, address: str, now_s: float) -> None:
        leg = self._leg(message.key, address)
        if leg is None or message.tenant != self._seal.tenant or message.fragment >= leg.offer.fragments:
            self.stats.late += 1
            return
        offer = leg.offer
        # It may be late, of an earlier PUT of this block that asked for less.
        asked = wire.FLAG_HELD | (wire.FLAG_DURABLE if offer.durable else 0)
        held = message.flags & asked == asked
        is_late = held and wire.is_of_before(message, leg.first_sequence)
        is_other = message.content != offer.write
        if is_late or (is_other and (not held or self._exchange.may_miss_deletions(address, message.epoch))):
            self.stats.late += 1
            return
        self._settle(offer, leg, leg.requests[message.fragment], message, now_s)
        if held:
            leg.created = bool(message.flags & wire.FLAG_CREATED) and message.content == offer.write
            self._on_held(offer, leg)
        elif not leg.missing:
            self._offer_again(offer, leg)

    def _take_acks(
        self, datagrams: Sequence[wire.Buffer], at: int, address: str, now_s: float
    ) -> Taken | None:
        """Take a run of acknowledgements of one block's received fragments, as `_on_ack` takes each."""
        leg = self._leg(wire.key_of(datagrams[at]), address)
        if leg is None:
            return None
        offer = leg.offer
        is_first = leg is offer.legs[0] or leg.alone
        target_ms = 0xFFFF if is_first else self._exchange.options.lane.target_backlog_ms
        taken = self._exchange.core.take_acks(
            datagrams, at, leg.requests, leg.missing, self._seal.tenant, offer.write, now_s, target_ms
        )
        if taken is None:
            return None
        count, epoch, over = taken
        leg.missing -= count
        for fragment, backlog_ms in over:
            first = offer.legs[0].requests[fragment].lane
            if first is not None:
                first.feel(backlog_ms)
        if not leg.missing:
            self._offer_again(offer, leg)
        return Taken(count, heard=True, epoch=epoch)

    def _settle(
        self, offer: Offer, leg: Leg, request: Request[Leg], message: wire.Message, now_s: float
    ) -> None:
        if request.done:
            self.stats.late += 1
            return
        leg.missing -= 1
        if request.lane is None:  # acknowledged before the first home's packet left: a copy of an earlier try
            request.done = True
            return
        request.lane.settle(request, now_s, message.backlog_ms)
        if leg is not offer.legs[0] and not leg.alone:
            first = offer.legs[0].requests[request.fragment].lane
            if first is not None:
                first.feel(message.backlog_ms)

    def _on_held(self, offer: Offer, leg: Leg) -> None:
        leg.held = True
        self._exchange.drop(leg.requests)
        self._exchange.request_owners.pop(leg, None)
        if leg is offer.legs[0]:  # the others can't be carried along any more
            for other in offer.legs[1:]:
                if not other.alone:
                    self._alone(other)
        if offer.held:
            self.stats.blocks_put += 1
            self.finish_held(offer)

    def _offer_again(self, offer: Offer, leg: Leg) -> None:
        """Offer all of the block again to a home that acknowledged everything and does not hold it."""
        leg.rounds += 1
        if leg.rounds >= ROUNDS:
            self.stats.refused += 1
            why = f"{leg.member.address} acknowledged all of it {ROUNDS} times and does not hold it"
            self.finish(offer, PutRefusedError(offer.block.key, why))
            return
        self.stats.put_again += 1
        leg.requests = self._new_requests(leg)
        leg.missing = offer.fragments
        self._alone(leg)

    def _on_members(self) -> None:
        """Replace homes that are down by those that are in their place."""
        for offer in list(self.active.values()):
            homes = self._exchange.members.homes(offer.block.key, offer.replicas)
            if len(homes) < offer.replicas:
                self._too_few(offer)
            kept = {home.number for home in homes}
            for leg in [leg for leg in offer.legs if leg.member.number not in kept]:
                offer.legs.remove(leg)
                self._exchange.drop(leg.requests)
                self._exchange.request_owners.pop(leg, None)
            known = {leg.member.number for leg in offer.legs}
            for home in homes:
                if home.number not in known:
                    self._add_leg(offer, home, alone=True)
            for leg in offer.legs:
                if not leg.held:
                    self._alone(leg)
            if offer.held:
                self.stats.blocks_put += 1
                self.finish_held(offer)

    def finish_held(self, offer: Offer) -> None:
        """End an offer that every home holds."""
        for leg in offer.legs:  # else it and they wait for the garbage collector
            leg.requests = []
        self.active.pop(offer.block.key, None)
        if not offer.future.done():
            offer.future.set_result(None)
