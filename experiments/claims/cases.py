"""Cases of the claims: traffic, systems, and the two systems that each claim compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commands.trace_options import TraceOptions
from experiments.study.systems import PEER_SHARES, Setting, system
from scenario import Scenario
from workload.trace import MOONCAKE

RDMA_SHARE = PEER_SHARES["RDMA as measured"]


@dataclass(frozen=True, slots=True)
class Work:
    """Kind of traffic, with the nodes that serve it."""

    name: str
    shape: str
    nodes: int
    scheduler: str
    condition: str
    model: str = "llama3-70b-fp8"
    gpus: int = 8
    """GPUs of a node."""


FREE = "free routing over 16 nodes, no NVLink between them"
AFFINITY = "session affinity on 16 nodes, no NVLink between them"
WORKS = {
    work.name: work
    for work in (
        Work("swarm", "swarm", 16, "random", f"16 sub-agents within 500 ms, {FREE}"),
        Work(
            "swarm-affinity",
            "swarm",
            16,
            "sessions",
            f"16 sub-agents within 500 ms, {AFFINITY}",
        ),
        Work("rollouts", "rollouts", 16, "random", f"16 samples within 100 ms, {FREE}"),
        Work("rollouts-affinity", "rollouts", 16, "sessions", f"16 samples within 100 ms, {AFFINITY}"),
        Work(
            "prefill-decode",
            "prefill-decode",
            5,
            "round_robin",
            "1 node writes, 4 others read within 20 ms, no NVLink between nodes",
        ),
        Work(
            "cold-start",
            "cold-start",
            9,
            "round_robin",
            "8 nodes without the prefix within 1 s, no NVLink between nodes",
        ),
        Work(
            "ranks",
            "ranks",
            9,
            "round_robin",
            "8 MLA ranks (DeepSeek-V3), a server and a link each, 128,000 tokens, no NVLink between them",
            model="deepseek-v3",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class System:
    """System of the study, with changes of its scenario and the memory that the switch needs for it."""

    base: str
    memory: str
    changes: Mapping[str, dict[str, Any]]


SYSTEMS = {
    "nothing": System("stores", "none: it forwards", {}),
    "merging": System("merging", "a pending table of 16,384 cells, no blocks", {}),
    "sram-pool": System("sram", "100 MB of SRAM and the pending table", {"pool": {"size_gb": 0.1}}),
    "dram-pool": System("switch", "256 GB of DRAM beside the switch and the pending table", {}),
    "lent-98": System("lent", "none", {}),
    "lent-87": System("lent", "none", {"direct": {"peer_share": RDMA_SHARE}}),
    "lent-merging": System("answered_merge", "a pending table of 16,384 cells, no blocks", {}),
}
CLAIMS = (
    ("merging", "nothing"),
    ("sram-pool", "merging"),
    ("dram-pool", "merging"),
    ("dram-pool", "lent-98"),
    ("merging", "lent-98"),
    ("merging", "lent-87"),
    ("lent-merging", "lent-98"),
)
"""Pairs of systems: each claim is about the first over the second."""


def scenario(
    work: Work,
    name: str,
    requests: int,
    seed: int,
    trace: Mapping[str, Any],
    block_tokens: int | None = None,
) -> Scenario:
    """Return the scenario of the system `name` under some traffic.

    `trace` has fields of a workload that replace the generated traffic; it may be empty.
    """
    setting = Setting(
        shape=work.shape,
        scheduler=work.scheduler,
        nodes=work.nodes,
        requests=requests,
        seed=seed,
        model=work.model,
    )
    if trace:
        setting = replace(
            setting,
            trace=str(trace["trace"]),
            trace_fields=tuple(trace.items()),
            block_tokens=block_tokens or MOONCAKE.block_tokens,
        )
    chosen = SYSTEMS[name]
    found = system(chosen.base, setting).changed(**chosen.changes)
    return found.changed(model={"gpus": work.gpus}, workload={"load": 1.0, "start_s": 0.0 if trace else None})


def agents_works(options: TraceOptions) -> dict[str, Work]:
    """Return recorded sessions under both kinds of routing; empty if no trace is given."""
    if options.trace is None:
        return {}
    condition = (
        f"{options.sessions_per_hour:g} sessions an hour, {Path(options.trace).name}, 8 nodes, no NVLink"
    )
    works = (
        Work("agents", "agents", 8, "random", f"{condition}, free routing"),
        Work("agents-affinity", "agents", 8, "sessions", f"{condition}, session affinity"),
    )
    return {work.name: work for work in works}
