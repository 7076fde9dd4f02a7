"""The replays of a run, and their execution in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commands.parallel import run_all
from controller.policies.reuse.reuse_parts import Parts
from experiments.policies.pools import NAMES, make_pool
from experiments.policies.replay import Result, replay
from experiments.policies.stores import DEFAULT_LINKS, Links
from workload.cost import CostModel
from workload.trace import Trace

ABLATION = "reuse without "
WITHOUT = {
    ABLATION + part: Parts(**{part: False}) for part in ("learning", "memory", "lookahead", "prefix", "worth")
}
"""Parts of the reuse-value policy with one switched off, by the name in reports."""


@dataclass(frozen=True)
class Job:
    """One replay: the trace's index in the run, a policy or an ablation, and the pool size in blocks."""

    trace: int
    policy: str
    blocks: int


def make_jobs(traces: int, policies: Sequence[str], sizes: Sequence[int]) -> list[Job]:
    """Return a job for each trace, policy and size, the longest-running first."""
    jobs = [Job(trace, policy, size) for trace in range(traces) for policy in policies for size in sizes]
    return sorted(jobs, key=lambda job: (job.policy in NAMES and job.policy != "reuse", -job.blocks))


def run_jobs(
    jobs: Sequence[Job],
    traces: Sequence[Trace],
    cost: CostModel,
    processes: int,
    done: Callable[[], None],
    links: Links = DEFAULT_LINKS,
) -> dict[Job, Result]:
    """Run the jobs and return their results; `done` is called after each."""

    def run(job: Job) -> Result:
        trace = traces[job.trace]
        parts = WITHOUT.get(job.policy)
        pool = make_pool("reuse" if parts else job.policy, job.blocks, trace, cost, parts)
        return replay(trace, job.policy, job.blocks, pool, cost, links)

    return dict(zip(jobs, run_all(run, jobs, processes, done), strict=True))
