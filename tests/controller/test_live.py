"""The controller's worker against a running switch, over gRPC, with packets on its ports."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from hashlib import blake2b
from ipaddress import IPv4Address
from itertools import count
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from scapy.packet import Raw

from controller.block_id import block_id, key_of
from controller.errors import ConnectionLostError
from controller.operations import Install, Result, SetThreshold
from controller.p4_constants import (
    OUTCOME_FILL_ENDED,
    OUTCOME_FORBIDDEN,
    OUTCOME_OVER_CONTROLLER,
    OUTCOME_SERVED,
)
from controller.p4runtime import session
from controller.process import ControllerProcess
from hostlib.protocol import wire
from hostlib.protocol.expected import expectation
from hostlib.protocol.hints import Hint
from hostlib.protocol.members import Members, State
from hostlib.protocol.transfer import BlockRef
from hostlib.tools.scapy_layer import KV
from tests.controller.live import (
    CONTROLLER,
    ENTRIES,
    FRAGMENTS,
    NODE,
    STORE,
    TENANT,
    LiveSwitch,
    assert_served,
    config,
    host,
    message,
    value,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.worker import SwitchWorker

pytestmark = pytest.mark.root


def key(number: int) -> bytes:
    return block_id(TENANT, blake2b(b"%d" % number, digest_size=16).digest())


@contextmanager
def controller(switch: LiveSwitch, wait: bool = True, **options: Any) -> Iterator[SwitchWorker]:
    """A controller's worker for the switch."""
    (worker,) = ControllerProcess(config(switch, **{"report_count": 1, **options})).workers
    worker.start()
    try:
        if wait:
            wait_until(lambda: worker.connected, "the controller to be ready")
        yield worker
    finally:
        worker.stop()
        worker.join(10)
    assert worker.failure is None


def admit(switch: LiveSwitch, worker: SwitchWorker, number: int) -> None:
    """Fetch a block until it is in the pool, with all its fragments."""
    switch.fetch(key(number))
    wait_until(lambda: key(number) in worker.pool.resident, f"block {number} to be admitted")
    switch.fetch(key(number))


def test_a_hot_block_is_admitted_filled_and_served(switch: LiveSwitch) -> None:
    with controller(switch, report_count=2) as worker:
        switch.fetch(key(1))
        switch.fetch(key(2))
        switch.fetch(key(2))
        wait_until(lambda: worker.pool.resident, "an admission")
        assert set(worker.pool.resident) == {key(2)}
        switch.fetch(key(2))
        assert_served(switch, key(2))
        wait_until(lambda: worker.pool.counts.hits, "hits to be counted")
    assert worker.outcomes[OUTCOME_SERVED] == FRAGMENTS


def test_a_full_pool_evicts_but_not_what_was_just_served(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        for number in range(ENTRIES):
            admit(switch, worker, number)

        def is_newest() -> bool:
            assert_served(switch, key(0))
            return list(worker.pool.policy)[-1] == key(0)

        wait_until(is_newest, "the policy to hear of the hits on block 0")
        admit(switch, worker, ENTRIES)
        installed = {entry.key for entry in worker.session.adapter.read_blocks()}
        assert installed == set(worker.pool.resident) == set(worker.pool.policy)
        assert_served(switch, key(0))
        assert_served(switch, key(ENTRIES))
    assert (worker.pool.counts.admitted, worker.pool.counts.evicted) == (ENTRIES + 1, 1)


@pytest.mark.slow
def test_a_switch_that_was_killed_and_started_again_is_set_up_anew(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        admit(switch, worker, 1)
        switch.kill()
        wait_until(lambda: not worker.connected, "the controller to notice")
        switch.start()
        wait_until(lambda: worker.connected, "the controller to come back")
        assert not worker.pool.resident
        assert len(worker.pool.policy) == 0
        admit(switch, worker, 1)
        assert_served(switch, key(1))


def test_a_lost_session_leaves_the_pool_as_it_was(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        admit(switch, worker, 1)
        sessions = worker.session.costs.sessions
        worker.session.adapter.session_client.stream.cancel()  # type: ignore[union-attr]
        wait_until(lambda: worker.session.costs.sessions > sessions and worker.connected, "a new session")
        assert set(worker.pool.resident) == {key(1)}
        assert_served(switch, key(1))
        admit(switch, worker, 2)


def test_a_restarted_controller_goes_on_with_what_the_switch_holds(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        admit(switch, worker, 1)
        admit(switch, worker, 2)
        worker.session.adapter.write([Install(key(9), 1, 3, FRAGMENTS)])  # lies across blocks
    with controller(switch) as worker:
        assert set(worker.pool.resident) == {key(1), key(2)} == set(worker.pool.policy)
        assert {entry.key for entry in worker.session.adapter.read_blocks()} == {key(1), key(2)}
        assert_served(switch, key(1))
        admit(switch, worker, 3)
        assert worker.pool.resident[key(3)].generation > worker.pool.resident[key(1)].generation


def test_the_controller_that_was_started_last_is_the_primary_one(switch: LiveSwitch) -> None:
    with controller(switch) as first, controller(switch) as second:
        wait_until(lambda: not first.connected, "the first controller to step back")
        admit(switch, second, 1)
        second.stop()
        second.join(10)
        wait_until(lambda: first.connected, "the first controller to take over")
        assert set(first.pool.resident) == {key(1)}


def test_a_table_that_strangers_filled_is_cleared(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        strangers = [Install(key(100 + n), ENTRIES * FRAGMENTS, 1, 1) for n in range(ENTRIES)]
        assert worker.session.adapter.write(strangers) == [Result.OK] * ENTRIES
        assert worker.session.adapter.write([Install(key(200), 1, 1, 1)]) == [Result.FAILED]
        switch.fetch(key(1))
        wait_until(lambda: worker.pool.counts.refused, "the table to be found full")
        wait_until(lambda: worker.pool.counts.read_backs > 1, "the entries to be read back")
        wait_until(lambda: not worker.session.adapter.read_blocks(), "the strangers to be removed")
        admit(switch, worker, 2)


def test_each_update_of_a_batch_has_its_own_result(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        one, two = Install(key(1), 0, 1, FRAGMENTS), Install(key(2), FRAGMENTS, 1, FRAGMENTS)
        adapter = worker.session.adapter
        assert adapter.write([one, two]) == [Result.OK, Result.OK]
        three = Install(key(3), 2 * FRAGMENTS, 1, FRAGMENTS)
        assert adapter.write([three, one]) == [Result.OK, Result.ALREADY_EXISTS]
        assert {entry.key: entry for entry in adapter.read_blocks()} == {e.key: e for e in (one, two, three)}


def test_a_block_that_is_being_computed_is_there_as_soon_as_its_home_has_it(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        (message,) = expectation(TENANT, [(BlockRef(key_of(key(1))), FRAGMENTS)], 0)
        switch.send(NODE, CONTROLLER.ipv4, Raw(message))
        wait_until(lambda: worker.pool.resident, "the block to have an entry")
        for fragment in range(FRAGMENTS):
            switch.put(key(1), fragment)
            switch.receive(STORE, wire.OP_PUT)
        switch.acknowledge(key(1), wire.FLAG_HELD | wire.FLAG_CREATED)
        switch.receive(NODE, wire.OP_PUT_ACK)
        assert_served(switch, key(1))
        assert worker.pool.counts.expected == 1
        assert worker.pool.counts.fills == 0


def test_a_hint_reaches_the_pool_and_its_outcome_the_node(switch: LiveSwitch) -> None:
    flags = wire.FLAG_BYPASS | wire.FLAG_HINT

    def hint(kind: Hint, seconds: int, sequence: int) -> wire.Message:
        fields = {"backlog_ms": kind, "recompute_ms": seconds, "sequence": sequence, "flags": flags}
        switch.send(NODE, CONTROLLER.ipv4, message("STAT", key(1), fragments=0, **fields))
        return switch.receive(NODE, wire.OP_FOUND)

    with controller(switch) as worker:
        assert hint(Hint.RETAIN, 60, 1).recompute_ms == 0  # it is not here yet
        admit(switch, worker, 1)
        told = hint(Hint.RETAIN, 60, 2)
        assert (told.recompute_ms, told.sequence, told.flags) == (1, 2, flags)
        assert worker.pool.policy.pinned == {key(1)}
        assert hint(Hint.DEMOTE, 0, 3).recompute_ms == 1
        wait_until(lambda: not worker.pool.resident, "the block to leave")
        assert worker.pool.policy.pinned == set()
        assert (worker.pool.counts.hints, worker.pool.counts.hints_done) == (3, 2)


def test_a_fill_fetches_the_block_at_once(switch: LiveSwitch) -> None:
    with controller(switch, fill="now", answer_timeout_s=10) as worker:
        switch.fetch(key(1))
        request = switch.receive(STORE, wire.OP_GET)
        assert (request.flags, request.fragment) == (wire.FLAG_FILL, 0)
        for fragment in range(FRAGMENTS):
            switch.reply(key(1), fragment, CONTROLLER.ipv4, flags=wire.FLAG_FILL, sequence=request.sequence)
        wait_until(lambda: worker.outcomes[OUTCOME_FILL_ENDED] == FRAGMENTS, "the fills to arrive")
        assert_served(switch, key(1))
        assert worker.pool.counts.fills == 1


def test_a_block_that_its_home_does_not_hold_leaves_the_pool(switch: LiveSwitch) -> None:
    with controller(switch, fill="now", answer_timeout_s=10) as worker:
        switch.fetch(key(1))
        wait_until(lambda: worker.pool.resident, "an admission")
        switch.send(STORE, CONTROLLER.ipv4, message("NOT_FOUND", key(1), flags=wire.FLAG_FILL))
        wait_until(lambda: not worker.pool.resident, "the block to be given up")
        assert not worker.session.adapter.read_blocks()


def test_an_evicted_block_is_sent_home_before_its_slots_are_freed(switch: LiveSwitch) -> None:
    with controller(
        switch, policy="fifo", eviction="reclaim", reclaims_in_flight=1, answer_timeout_s=0.5
    ) as worker:
        for number in range(ENTRIES):  # one more than the policy may hold
            admit(switch, worker, number)
        wait_until(lambda: len(worker.pool.reclaims), "a reclaim")
        asked: dict[int, int] = {}
        acknowledged = set[int]()
        while len(acknowledged) < FRAGMENTS:
            assert key(0) in worker.pool.resident
            _, source, put = switch.receive_first((STORE, wire.OP_PUT))
            assert (source, put.key, put.flags) == (CONTROLLER.ipv4, key_of(key(0)), wire.FLAG_RECLAIM)
            assert bytes(put.value) == value(key(0), put.fragment)
            asked[put.fragment] = asked.get(put.fragment, 0) + 1
            if put.fragment != 0 or asked[0] > 1:  # the first acknowledgement is lost
                acknowledged.add(put.fragment)
                acknowledge(switch, source, put, held=len(acknowledged) == FRAGMENTS)
        wait_until(lambda: worker.pool.counts.reclaimed, "the slots to be freed")
        assert {entry.key for entry in worker.session.adapter.read_blocks()} == set(worker.pool.resident)
        assert key(0) not in worker.pool.resident


def test_an_evicted_block_that_its_home_holds_costs_one_fragment(switch: LiveSwitch) -> None:
    with controller(switch, eviction="value", reclaims_in_flight=1) as worker:
        for number in range(ENTRIES):
            admit(switch, worker, number)
        _, source, put = switch.receive_first((STORE, wire.OP_PUT))
        acknowledge(switch, source, put, held=True)
        wait_until(lambda: worker.pool.counts.evicted, "the slots to be freed")
        assert {entry.key for entry in worker.session.adapter.read_blocks()} == set(worker.pool.resident)
        counts = worker.pool.counts
        assert (counts.held_elsewhere, counts.reclaimed) == (1, 0)
        assert counts.reclaim_bytes == wire.VALUE_FRAME_BYTES + wire.HEADER_FRAME_BYTES


def acknowledge(switch: LiveSwitch, source: IPv4Address, put: wire.Message, held: bool) -> None:
    flags = put.flags | held * wire.FLAG_HELD
    fields = {"sequence": put.sequence, "flags": flags, "backlog_ms": 7}
    switch.send(STORE, source, message("PUT_ACK", block_id(put.tenant, put.key), put.fragment, **fields))


def test_a_block_that_is_not_whole_is_dropped_instead_of_reclaimed(switch: LiveSwitch) -> None:
    with controller(switch, policy="fifo", eviction="reclaim", reclaims_in_flight=1) as worker:
        switch.fetch(key(0))
        wait_until(lambda: key(0) in worker.pool.resident, "block 0 to be admitted")
        for number in range(1, ENTRIES):
            admit(switch, worker, number)
        wait_until(lambda: worker.pool.counts.not_whole, "the reclaim to be refused by the switch")
        wait_until(lambda: key(0) not in worker.pool.resident, "block 0 to be removed")


def test_nodes_cannot_answer_in_the_store_s_place(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        admit(switch, worker, 1)
        switch.send(NODE, CONTROLLER.ipv4, message("NOT_FOUND", key(1), flags=wire.FLAG_FILL))
        switch.send(NODE, host(STORE).ipv4, message("RECLAIM", key(1)))
        wait_until(lambda: worker.outcomes[OUTCOME_FORBIDDEN] == 2, "both to be counted as forbidden")
        assert key(1) in worker.pool.resident


def test_hosts_are_told_which_storage_nodes_are_there(switch: LiveSwitch) -> None:
    """HELLO as PacketIn, MEMBERS as PacketOut; who is silent is down."""
    with controller(switch) as worker:
        store = str(host(STORE).ipv4)
        hello = KV(op="HELLO", fragments=0, flags=wire.FLAG_HELD)
        switch.send(STORE, host(NODE).ipv4, hello)
        first = Members.decode(switch.receive(NODE, wire.OP_MEMBERS).value)
        assert [(node.number, node.address) for node in first.nodes] == [(1, store)]

        def is_down() -> bool:
            latest = Members.decode(switch.receive(NODE, wire.OP_MEMBERS).value)
            return latest.epoch > first.epoch and latest.nodes[0].state is State.DOWN

        wait_until(is_down, "the node to hear that the store is down")
        assert worker.connected


def test_no_default_rate_touches_what_a_node_sends(switch: LiveSwitch) -> None:
    with controller(switch) as worker:
        for number in range(200):
            switch.ask(key(number), flags=wire.FLAG_RETRY)
        wait_until(lambda: sum(worker.outcomes[:7]) + sum(worker.outcomes[10:15]) >= 200, "all to be counted")
        assert sum(worker.outcomes[: OUTCOME_OVER_CONTROLLER + 1]) == 0


def test_reports_that_come_faster_than_they_are_read_are_counted(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "QUEUE_MESSAGES", 2)
    (worker,) = ControllerProcess(config(switch)).workers
    opened = worker.session  # nobody reads from it
    wait_until(lambda: opens(opened), "the switch to listen")
    try:
        opened.adapter.write([SetThreshold(1)])
        number = count(1)

        def is_counted() -> bool:
            switch.fetch(key(next(number)))
            return opened.costs.messages_dropped > 0

        wait_until(is_counted, "a digest to find the queue full")
        assert 0 < len(opened.receive(1)) <= 2
    finally:
        opened.close()


def opens(closed: session.Session) -> bool:
    with suppress(ConnectionLostError):
        closed.open(time())
        return True
    return False
