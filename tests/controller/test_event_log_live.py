"""What the live controller decided, any policy decides again when it replays the recorded event log."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from controller.block_id import block_id
from controller.config import Config, PoolSize, Thresholds
from controller.policies import POLICY_NAMES, Admit, Evict, Hits, HomeLoad, Miss, make_policy
from controller.policies.eventlog import read_events, read_head
from controller.process import ControllerProcess
from hostlib.protocol import wire
from hostlib.protocol.wire import fingerprint
from tests.controller.live import (
    DEFINES,
    FRAGMENTS,
    NODE,
    STORE,
    TENANT,
    LiveSwitch,
    live_switch,
    switch_config,
    wait_until,
)
from topologies.engines import Embedded
from workload.generate import generate
from workload.keys import KeySpace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from controller.policies import Decision, Policy
    from controller.worker import SwitchWorker
    from topologies.engines import Artifacts

pytestmark = pytest.mark.root

BLOCKS = 24
"""Baselines need twenty."""
ACCESSES = 60
LIVE = ("reuse",)
"""One that learns. That any policy decides a trace again is tested in
test_invariants.py without a switch."""


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    from tests.controller.conftest import PROGRAM

    defines = DEFINES | {"POOL_BLOCKS": BLOCKS, "POOL_SLOTS": BLOCKS * FRAGMENTS}
    return Embedded().compile(PROGRAM, defines, tmp_path_factory.mktemp("recorded"))


@contextmanager
def recording(switch: LiveSwitch, policy: str, logs: Path) -> Iterator[tuple[SwitchWorker, list[Decision]]]:
    """A controller that writes its event log; its worker, and what its policy decided."""
    size = PoolSize(BLOCKS, BLOCKS * FRAGMENTS, FRAGMENTS)
    thresholds = Thresholds(report_count=1, eviction="drop")
    config = Config((replace(switch_config(switch), pool=size),), policy=policy, thresholds=thresholds)
    with ControllerProcess(config, logs) as process:
        (worker,) = process.workers
        decided = record_decisions(worker.pool.policy)
        worker.start()
        try:
            wait_until(lambda: worker.connected, "the controller to be ready")
            yield worker, decided
        finally:
            worker.stop()
            worker.join(10)
    assert worker.failure is None


def record_decisions(policy: Policy) -> list[Decision]:
    decided: list[Decision] = []
    handle = policy.handle

    def recorded(event: object) -> Sequence[Decision]:
        decisions = handle(event)  # type: ignore[arg-type]
        decided.extend(decisions)
        return decisions

    policy.handle = recorded  # type: ignore[method-assign]
    return decided


def play(switch: LiveSwitch, seed: int) -> None:
    """A node asks for chains of blocks; what the pool does not hold, the test answers as the store."""
    space, left = KeySpace(), ACCESSES
    for request in generate("chat", seed, 60).requests:
        chain = [b"\0" * wire.KEY_BYTES, *space.chain(request.blocks[:8])]
        for depth, (parent, key) in enumerate(pairwise(chain)):
            place: dict[str, Any] = {
                "depth": depth,
                "chain_blocks": len(chain) - 1,
                "parent_key": fingerprint(parent),
                "backlog_ms": left % 7,
            }
            for fragment in range(FRAGMENTS):
                block = block_id(TENANT, key)
                switch.ask(block, fragment, flags=wire.FLAG_RETRY, **place)
                port, _, _ = switch.receive_first((NODE, wire.OP_VALUE), (STORE, wire.OP_GET))
                if port == STORE:
                    switch.reply(block, fragment, **place)
                    switch.receive(NODE, wire.OP_VALUE)
            left -= 1
        if left <= 0:
            return


@pytest.mark.parametrize(
    "policy",
    [*LIVE, *(pytest.param(name, marks=pytest.mark.slow) for name in POLICY_NAMES if name not in LIVE)],
)
def test_a_recorded_log_replays_to_the_decisions_of_the_live_controller(
    artifacts: Artifacts, tmp_path: Path, policy: str
) -> None:
    with (
        live_switch(Embedded(), artifacts, tmp_path / "switch.log") as switch,
        recording(switch, policy, tmp_path) as (worker, decided),
    ):
        counts, seeds = worker.pool.counts, count(1)

        def has_evicted() -> bool:
            play(switch, next(seeds))
            return counts.evicted > 0

        def has_hit() -> bool:
            for key in list(worker.pool.resident):
                switch.fetch(key)
            return counts.hits > 0

        wait_until(has_evicted, "evictions")
        wait_until(has_hit, "hits")
    log = (tmp_path / "s1.jsonl").read_text().splitlines()
    head, events = read_head(log), list(read_events(log))
    assert head is not None
    assert (head.policy, head.capacity_blocks, head.capacity_slots) == (policy, BLOCKS, BLOCKS * FRAGMENTS)
    again = make_policy(policy, head.capacity_blocks, capacity_slots=head.capacity_slots)
    assert [decision for event in events for decision in again.handle(event)] == decided
    assert set(again) == set(worker.pool.policy)
    assert {type(event) for event in events} >= {Miss, Hits, HomeLoad}
    assert {type(decision) for decision in decided} == {Admit, Evict}
