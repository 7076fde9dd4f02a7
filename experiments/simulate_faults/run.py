"""Runs a plan."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.simulate_faults.history import CRASHED
from experiments.simulate_faults.lending import LendingPlayer
from experiments.simulate_faults.plan import LENDING
from experiments.simulate_faults.player import Player
from experiments.simulate_faults.virtual_time import StuckError, run_virtual

if TYPE_CHECKING:
    from experiments.simulate_faults.plan import Plan
    from topologies.engines import Artifacts


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of one run."""

    seed: int
    violations: tuple[str, ...]
    counts: dict[str, int]
    """Number of operations by what became of them, and other counts."""
    trace: str
    """Digest of what happened when; equal for equal runs."""
    virtual_s: float
    cpu_s: float


def run(plan: Plan, artifacts: Artifacts) -> RunOutcome:
    """Play it and check it."""
    began_s = time.process_time()
    player = (LendingPlayer if plan.topology == LENDING else Player)(plan, artifacts)
    try:
        run_virtual(player.play())
    except StuckError as error:
        player.history.violation(CRASHED, f"stuck: {error}")
    history = player.history
    counts = dict(history.outcomes)
    trace = player.trace.hexdigest()[:16]
    cpu_s = time.process_time() - began_s
    return RunOutcome(plan.seed, tuple(history.violations), counts, trace, player.ended_s, cpu_s)
