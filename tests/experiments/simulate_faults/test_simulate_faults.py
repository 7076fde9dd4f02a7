"""Whole systems with random faults keep their promises and repeat themselves; what is broken is noticed."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from commands.errors import OptionError
from controller.config import Limits
from controller.deletions import Deletions
from controller.operations import Answer
from emulator import control_plane
from emulator.result import PROGRAM
from experiments.simulate_faults import plan as plans
from experiments.simulate_faults.control import DEFINES
from experiments.simulate_faults.plan import Fault, Plan
from experiments.simulate_faults.run import run
from experiments.simulate_faults.shrink import minimal, shrink
from experiments.simulate_faults.virtual_time import JumpingSelector, run_virtual
from experiments.simulate_faults.world import World
from hostlib.client.client import Client
from hostlib.peer.lending import Lending
from hostlib.protocol.seal import Seal
from hostlib.storage.simulated_disk import SimulatedDisk
from topologies.engines import Artifacts, make_engine
from v1model.p4runtime.pipeline import Pipeline

OPERATIONS = 200


@pytest.fixture(scope="module", autouse=True)
def quiet() -> None:
    """That a switch goes is no news here."""
    logging.getLogger("controller.worker").setLevel(logging.ERROR)


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    return make_engine("embedded").compile(PROGRAM, DEFINES, tmp_path_factory.mktemp("program"))


def plan_with(seed: int, *faults: Fault) -> Plan:
    """The operations of a seed and these faults."""
    return replace(plans.make(seed, OPERATIONS), faults=faults)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_faults_break_no_promise(artifacts: Artifacts, seed: int) -> None:
    outcome = run(plans.make(seed, OPERATIONS), artifacts)
    assert outcome.violations == ()
    assert outcome.counts["read"] > OPERATIONS / 10
    assert outcome.counts["pool_fragments"] > 0


def test_a_seed_repeats_itself_exactly_with_either_core_of_the_hosts(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    for pure in ("1", "0"):
        monkeypatch.setenv("WEIR_PURE", pure)
        outcomes.append(run(plans.make(5, OPERATIONS // 2), artifacts))
    assert outcomes[0].trace == outcomes[1].trace
    assert outcomes[0].counts == outcomes[1].counts


class Machine:
    """How fast it is: calls of what it makes slow take so much longer."""

    def __init__(self) -> None:
        self.calls, self.pause_s = 0, 0.0

    def slow_down(self, work: Callable[..., object]) -> Callable[..., object]:
        def slow(*arguments: object) -> object:
            self.calls += 1
            time.sleep(self.pause_s)
            return work(*arguments)

        return slow


@pytest.mark.slow
def test_a_machine_that_is_three_times_slower_plays_a_seed_alike(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meters, too, go by virtual time: here they let through less than is asked for."""
    few = {"node": Limits(400, 20, 20)}
    monkeypatch.setattr(control_plane, "limits_of_link", lambda role, rate_bit_s: few.get(role))
    faults = Fault(1.3, "restart_switch", (0,), 0.3), Fault(1.9, "restart_controller", (0,), 0.3)
    plan = replace(plans.make(9, OPERATIONS // 3), faults=faults)
    machine, controlled = Machine(), Machine()
    monkeypatch.setattr(JumpingSelector, "select", machine.slow_down(JumpingSelector.select))
    monkeypatch.setattr(Pipeline, "write", controlled.slow_down(Pipeline.write))
    quick = run(plan, artifacts)
    machine.pause_s = quick.cpu_s / machine.calls
    controlled.pause_s = quick.cpu_s / controlled.calls
    slow = run(plan, artifacts)
    assert (slow.trace, slow.counts, slow.violations) == (quick.trace, quick.counts, ())


def test_what_the_machines_clock_says_changes_nothing(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plans.make(11, OPERATIONS // 3)
    before = run(plan, artifacts)
    rng = random.Random(1)
    for clock in ("time", "monotonic", "perf_counter", "thread_time", "time_ns", "monotonic_ns"):
        monkeypatch.setattr(time, clock, lambda: rng.randrange(1 << 40))
    again = run(plan, artifacts)
    monkeypatch.undo()
    assert (again.trace, again.counts, again.violations) == (before.trace, before.counts, ())


@pytest.mark.parametrize("victim", [1.0, pytest.param(3.0, marks=pytest.mark.slow)])
def test_of_two_controllers_one_is_killed_and_the_other_goes_on(artifacts: Artifacts, victim: float) -> None:
    outcome = run(plan_with(3, Fault(1.2, "second_controller", (0,), 0.8, victim)), artifacts)
    assert outcome.violations == ()
    assert outcome.counts["chains"] > 0
    assert outcome.counts["pushed_blocks"] > 0
    assert "not_found_though_durable" not in outcome.counts


@pytest.mark.parametrize("topology", [plans.RACKS, pytest.param(plans.LEAF_SPINE, marks=pytest.mark.slow)])
def test_of_many_switches_those_that_restart_break_no_promise(artifacts: Artifacts, topology: str) -> None:
    faults = Fault(1.3, "restart_switch", (0,), 0.2), Fault(2.0, "restart_switch", (3,), 0.2)
    outcome = run(replace(plans.make(6, OPERATIONS), faults=faults, topology=topology), artifacts)
    assert outcome.violations == ()
    assert outcome.counts["pool_fragments"] > 0
    assert outcome.counts["read"] > OPERATIONS / 10


def test_a_disk_that_does_not_sync_is_noticed(artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync", lambda disk: None)
    outcome = run(plan_with(1), artifacts)
    assert any("was acknowledged as on" in text for text in outcome.violations)


def test_pools_off_the_way_may_serve_what_was_deleted_without_a_controller(artifacts: Artifacts) -> None:
    faults = tuple(Fault(at_s, "restart_controller", (0,), 2.5) for at_s in (1.5, 5.5))
    plan = plans.make(4 * plans.MANY_SWITCHES_EVERY, 3 * OPERATIONS)
    outcome = run(replace(plan, faults=faults, topology=plans.RACKS), artifacts)
    assert outcome.violations == ()
    assert outcome.counts["pools_untold"] > 0
    assert outcome.counts["deleted"] > 0


def test_a_node_with_a_list_of_a_clock_that_was_ahead_misses_the_newest(artifacts: Artifacts) -> None:
    async def play() -> None:
        world = World(plan_with(1), artifacts)
        try:
            await asyncio.sleep(1.0)
            assert not world.is_behind(0)
            health = world.clients[0]._exchange.health
            health.members = replace(health.members, epoch=health.members.epoch + 100)
            assert world.is_behind(0)
            key = bytes(16)
            assert not world.is_cut_off_with_a_home(0, key)
            for store in world.stores:
                assert store.node is not None
                store.node.joining.members = health.members
            assert world.is_cut_off_with_a_home(0, key)
            for store in world.stores:
                store.kill(keep=False)
            assert not world.is_cut_off_with_a_home(0, key)
        finally:
            world.close()

    run_virtual(play())


def obeyed_by_one(deletions: Deletions, switch: str, answer: Answer) -> None:
    """Take the answer of one switch for that of all switches."""
    deletion = deletions._under_way.get(answer.message.sequence)
    if deletion is not None:
        deletion.untold.clear()
        deletions._switches[deletion.switch]()


@pytest.mark.parametrize("topology", [plans.RACKS, plans.LEAF_SPINE])
def test_a_switch_that_is_not_told_of_deletions_is_noticed(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, topology: str
) -> None:
    plan = replace(plans.make(2 * plans.MANY_SWITCHES_EVERY, 400), faults=(), topology=topology)
    right = run(plan, artifacts)
    assert right.violations == ()
    assert right.counts["pushed_blocks"] > 0
    monkeypatch.setattr(Deletions, "obeyed", obeyed_by_one)
    outcome = run(plan, artifacts)
    assert any("read what was deleted" in text for text in outcome.violations)


def test_a_reader_that_checks_no_tag_is_noticed(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_PURE", "1")  # the compiled core checks tags by itself
    flips = replace(plans.make(1, OPERATIONS // 2), faults=(Fault(0.5, "flip", (), 60.0, 0.05),))
    assert run(flips, artifacts).violations == ()
    monkeypatch.setattr(Seal, "is_genuine", lambda seal, message: True)
    outcome = run(flips, artifacts)
    assert any("read what nobody wrote there" in text for text in outcome.violations)


@pytest.mark.slow
def test_an_operation_that_never_ends_is_noticed(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(client: Client, block: object) -> None:
        await asyncio.sleep(1e6)

    monkeypatch.setattr(Client, "get", never)
    outcome = run(replace(plans.make(1, 20), faults=()), artifacts)
    assert any("never ends" in text for text in outcome.violations)


def lending(operations: int, *faults: Fault) -> Plan:
    """A plan of nodes that lend one another what they hold."""
    seed = plans.MANY_SWITCHES_EVERY * plans.TURNS.index(plans.LENDING)
    plan = plans.make(seed, operations)
    assert plan.topology == plans.LENDING
    return replace(plan, faults=faults) if faults else plan


def test_nodes_that_lend_break_no_promise(artifacts: Artifacts) -> None:
    outcome = run(lending(2 * OPERATIONS), artifacts)
    assert outcome.violations == ()
    assert outcome.counts["read"] > OPERATIONS / 10
    assert outcome.counts["pool_fragments"] > 0
    assert run(lending(2 * OPERATIONS), artifacts).trace == outcome.trace


def test_a_wrong_value_of_a_node_that_lends_is_noticed(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_PURE", "1")
    monkeypatch.setattr(Seal, "is_genuine", lambda seal, message: True)
    outcome = run(lending(OPERATIONS, Fault(0.5, "flip", (), 60.0, 0.2)), artifacts)
    assert any("read what nobody has computed" in text for text in outcome.violations)


def test_a_node_that_does_not_say_what_it_holds_is_noticed(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lending, "_say_keys", lambda lending, name, keys: None)
    outcome = run(lending(OPERATIONS, Fault(0.5, "kill_store", (0,), 1.0, 1)), artifacts)
    assert any("does not know who holds it" in text for text in outcome.violations)


def test_a_failing_plan_shrinks_to_what_it_takes(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync", lambda disk: None)
    small = shrink(plans.make(1, 60), lambda plan: bool(run(plan, artifacts).violations), tries=40)
    assert small.faults == ()
    assert len(small.operations) == 1
    small.write(tmp_path / "plan.json")
    assert plans.read(tmp_path / "plan.json") == small


def test_nothing_can_be_left_out_of_what_is_minimal() -> None:
    assert minimal(range(100), lambda some: {3, 47, 48} <= set(some)) == (3, 47, 48)
    assert minimal(range(100), lambda some: True) == ()
    assert list(minimal([7], lambda some: 7 in some)) == [7]


def test_what_is_no_plan_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"seed": 1}')
    with pytest.raises(OptionError, match=r"plan\.json: no plan"):
        plans.read(path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [plans.HARSH_EVERY, plans.MANY_SWITCHES_EVERY])
def test_a_harsh_seed_breaks_no_promise(artifacts: Artifacts, seed: int) -> None:
    outcome = run(plans.make(seed, 5 * OPERATIONS), artifacts)
    assert outcome.violations == ()
    assert outcome.counts["deleted"] > 5 * OPERATIONS / 20
    assert outcome.counts["read"] > 5 * OPERATIONS / 10


def test_a_plan_that_was_written_is_read_alike(tmp_path: Path) -> None:
    for seed in (1, plans.HARSH_EVERY, plans.MANY_SWITCHES_EVERY, 3 * plans.MANY_SWITCHES_EVERY):
        plan = plans.make(seed, OPERATIONS)
        plan.write(tmp_path / "plan.json")
        assert plans.read(tmp_path / "plan.json") == plan
