"""When things go wrong, on a real network: every request ends, and no block is ever wrong.

A small star with merging and a pool whose controller is gone, so that the test can write the table of losses;
16 pending cells for 32 fragments and more, so that the pending table is full all the time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from controller.costs import Costs
from controller.p4runtime.p4info import Program, canonical, load_p4info
from controller.p4runtime.p4runtime_client import SwitchClient
from emulator.processes import READY_TIMEOUT_S, LineProcess, wait_for
from emulator.result import PROGRAM
from experiments.incast.emulation import START_DELAY_S, Emulation
from experiments.incast.options import parse_options
from experiments.incast.patterns import Chain
from experiments.incast.scenario import make_scenario
from hostlib.protocol import wire
from topologies.engines import Embedded
from topologies.network import Network
from v1model.protos.p4.v1 import p4runtime_pb2

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

OPTIONS = [
    "--nodes",
    "1,2,4",
    "--blocks",
    "8",
    "--patterns",
    "same",
    "--modes",
    "both",
    "--bursts",
    "1",
    "--deadline",
    "8",
]
BLOCKS = 8
DEFINES = {"FAULTS": 1, "PENDING_CELLS": 4}  # fewer than the probes of a burst
ALL, SOME = 0xFFFF, 0x3000
"""Of 65,536. Some: enough that surely one is lost, and few enough that none is at every try."""

A, B, C, VANISHING = "node1", "node2", "node3", "node4"
STORE = "store1"
TIMEOUT_S = 60.0


@dataclass
class Faulty:
    """The network, and what can be done to it."""

    network: Network
    emulation: Emulation
    client: SwitchClient
    program: Program
    pooled: Chain
    """Blocks that are in the pool's index."""
    fresh: Chain
    """Blocks that are not."""

    def burst(self, *nodes: str) -> dict[str, dict[str, Any]]:
        """All nodes ask for all blocks at the same moment."""
        return self.emulation.burst({node: [self.pooled, self.fresh] for node in nodes}, push=False)

    @contextmanager
    def losing(self, op: int, share: int, host: str | None = None) -> Iterator[None]:
        """A share of the packets of an operation, from one host or all, is lost."""
        entry = p4runtime_pb2.TableEntry(
            table_id=self.program.table_id("ingress.injected.losses"), priority=1
        )
        entry.match.add(field_id=2).ternary.value = canonical(op)
        entry.match[0].ternary.mask = canonical(0xFF)
        if host is not None:
            entry.match.add(field_id=1).ternary.value = canonical(self.port(host))
            entry.match[1].ternary.mask = canonical(0x1FF)
        (action,) = [a for a in self.program.p4info.actions if a.preamble.name == "ingress.injected.lose"]
        entry.action.action.action_id = action.preamble.id
        entry.action.action.params.add(param_id=1, value=canonical(share))
        self.write("INSERT", entry)
        try:
            yield
        finally:
            self.write("DELETE", entry)

    def write(self, kind: str, entry: Any) -> None:
        update = p4runtime_pb2.Update(type=kind, entity=p4runtime_pb2.Entity(table_entry=entry))
        assert self.client.write_updates([update]) == [0]

    def port(self, host: str) -> int:
        return next(port.number for port in self.network.fabric.ports("s1") if port.peer == host)

    def link(self, host: str, state: str) -> None:
        self.network.mininet["s1"].cmd(f"ip link set s1-eth{self.port(host)} {state}")

    def lost(self) -> int:
        """Packets that were lost on purpose so far."""
        return self.outcome("OUTCOME_LOST")

    def outcome(self, name: str) -> int:
        from controller import p4_constants

        entity = p4runtime_pb2.Entity()
        entity.counter_entry.counter_id = self.program.counter_id(p4_constants.OUTCOMES)
        entity.counter_entry.index.index = getattr(p4_constants, name)
        (answer,) = self.client.read([entity])
        return int(answer.counter_entry.data.packet_count)


@pytest.fixture(scope="module")
def faulty() -> Iterator[Faulty]:
    scenario = make_scenario(parse_options(OPTIONS))
    pooled, fresh, _ = (case.bursts[0][A][0] for case in scenario.cases())
    engine = Embedded()
    with Network(scenario.fabric, engine) as network:
        artifacts = engine.compile(PROGRAM, scenario.defines | DEFINES, network.directory)
        emulation = Emulation(scenario, network, artifacts)
        with emulation.mode("both") as mode:
            assert_served(emulation.burst({node: [pooled] for node in (A, B, C)}, push=False), BLOCKS)
            wait_until(lambda: admitted(mode.controller, emulation) == BLOCKS, "the pool's entries")
            mode.controller.stop()
            client = SwitchClient(
                1, network.address("s1"), (1 << 60, 1), lambda _: None, lambda: None, Costs()
            )
            yield Faulty(network, emulation, client, Program(load_p4info(artifacts.p4info)), pooled, fresh)
            client.tear_down()


def admitted(controller: LineProcess, emulation: Emulation) -> int:
    return int(emulation.counts(controller)["controller"]["admitted"])


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {TIMEOUT_S:g} s for {what}"
        time.sleep(0.01)


def assert_served(reports: dict[str, dict[str, Any]], blocks: int = 2 * BLOCKS) -> None:
    """Every node got every block; the reader has compared each bit."""
    for report in reports.values():
        assert (report["errors"], report["corrupt"], len(report["block_ms"])) == ({}, 0, blocks)


@pytest.mark.parametrize(("op", "host"), [(wire.OP_VALUE, STORE), (wire.OP_GET, None)])
def test_lost_packets_delay_but_lose_nothing(faulty: Faulty, op: int, host: str | None) -> None:
    before = faulty.lost()
    with faulty.losing(op, SOME, host):
        reports = faulty.burst(A, B, C)
    assert_served(reports)
    assert faulty.lost() > before
    assert sum(report["retransmits"] for report in reports.values()) > 0


def test_a_full_pending_table_costs_merges_and_nothing_else(faulty: Faulty) -> None:
    before = faulty.outcome("OUTCOME_UNMERGED")
    assert_served(faulty.burst(A, B, C))
    assert faulty.outcome("OUTCOME_UNMERGED") > before


def test_without_answers_a_request_ends_with_a_clear_error_and_nothing_wedges(faulty: Faulty) -> None:
    with faulty.losing(wire.OP_VALUE, ALL, STORE):
        (report,) = faulty.burst(A).values()
    assert set(report["errors"]) <= {"TransferTimeoutError"}
    assert report["errors"]["TransferTimeoutError"] >= len(faulty.fresh)
    assert_served(faulty.burst(A, B, C))


def test_a_link_that_goes_down_and_comes_back(faulty: Faulty) -> None:
    faulty.link(STORE, "down")
    readers = [faulty.emulation.hosts[node] for node in (A, B)]
    chains = [[key.hex() for key in faulty.fresh]]
    before = faulty.network.transmitted_bytes(A)
    for reader in readers:
        reader.send(json.dumps({"at_s": time.monotonic() + START_DELAY_S, "chains": chains, "push": False}))
    wait_until(lambda: faulty.network.transmitted_bytes(A) > before, "requests into the broken link")
    faulty.link(STORE, "up")
    wait_for("finished", readers, faulty.emulation.events, TIMEOUT_S)
    assert_served({reader.name: reader.last_events["finished"] for reader in readers}, BLOCKS)


def test_a_store_that_answers_twice_and_late(faulty: Faulty) -> None:
    emulation = faulty.emulation
    config = str(faulty.network.directory / f"{STORE}.json")

    def restart(module: str) -> None:
        emulation.hosts[STORE].stop()
        command = [sys.executable, "-m", module, config]
        store = LineProcess(
            STORE, command, faulty.network.directory / "store.log",
            lambda *given, **options: faulty.network.popen(STORE, *given, **options), emulation.events,
        )  # fmt: skip
        emulation.hosts[STORE] = store
        wait_for("ready", [store], emulation.events, READY_TIMEOUT_S)
        store.send("start")

    restart("tests.experiments.incast.doubling_store")
    try:
        first = faulty.burst(A, B, C)
        again = faulty.burst(A, B, C)  # the late answers to the first arrive meanwhile
    finally:
        restart("hostlib.storage.storage")
    assert_served(first)
    assert_served(again)
    assert sum(report["late"] for report in again.values()) > 0


def test_a_waiter_that_vanished_holds_up_nobody(faulty: Faulty) -> None:
    vanishing = faulty.emulation.hosts[VANISHING]
    chains = [[key.hex() for key in (*faulty.pooled, *faulty.fresh)]]
    before = faulty.network.transmitted_bytes(VANISHING)
    vanishing.send(json.dumps({"at_s": time.monotonic(), "chains": chains, "push": False}))
    wait_until(lambda: faulty.network.transmitted_bytes(VANISHING) > before, "its requests")
    vanishing.stopping = True
    vanishing.process.kill()
    assert_served(faulty.burst(A, B, C))
