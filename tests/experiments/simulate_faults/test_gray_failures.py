"""A storage node of which only a part fails costs about what one costs that is cut off."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from emulator.result import PROGRAM
from experiments.simulate_faults import plan as plans
from experiments.simulate_faults.control import DEFINES
from experiments.simulate_faults.plan import GRAY_FAULTS, Fault, Plan
from experiments.simulate_faults.run import RunOutcome, run
from topologies.engines import Artifacts, make_engine

OPERATIONS = 1_000
FROM_S, FOR_S = 2.0, 7.0
SEED = 2
FAILED = ("TransferTimeoutError", "PutRefusedError", "CorruptBlockError", "OverloadedError")


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    logging.getLogger("controller.worker").setLevel(logging.ERROR)
    return make_engine("embedded").compile(PROGRAM, DEFINES, tmp_path_factory.mktemp("program"))


def plan_of(seed: int, kind: str) -> Plan:
    """All blocks have two homes, and one storage node suffers for most of the time."""
    plan = plans.make(seed, OPERATIONS)
    operations = tuple(replace(one, replicas=2) if one.fragments else one for one in plan.operations)
    return Plan(seed, 2, operations, (Fault(FROM_S, kind, (seed % plans.STORES,), FOR_S),))


def failed(outcome: RunOutcome) -> int:
    """Operations that were not done."""
    return sum(outcome.counts.get(name, 0) for name in FAILED)


@pytest.fixture(scope="module")
def failed_by_cuts(artifacts: Artifacts) -> int:
    return failed(run(plan_of(SEED, "cut"), artifacts))


@pytest.mark.slow
@pytest.mark.parametrize("kind", GRAY_FAULTS)
def test_no_more_fails_than_where_a_storage_node_is_cut_off(
    artifacts: Artifacts, failed_by_cuts: int, kind: str
) -> None:
    outcome = run(plan_of(SEED, kind), artifacts)
    assert outcome.violations == ()
    assert failed(outcome) <= failed_by_cuts + OPERATIONS // 50
