"""Requests for given chains, in turn at four nodes that have nothing but one another."""

import json
from pathlib import Path
from typing import Any

from scenario import Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.cost import make_cost_model

COST = make_cost_model(gpu="h800")
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)


def play(folder: Path, chains: list[list[int]], late_s: float = 10.0, **tables: dict[str, Any]) -> SimResult:
    """Requests for these chains, in turn at four nodes that have nothing but one another.

    The second comes `late_s` after the first, the others 10 s apart or, if that is less, 10 ms.
    """
    gap_s = 10.0 if late_s >= 10.0 else 0.01
    trace = folder / f"{len(list(folder.iterdir()))}.jsonl"
    trace.write_text(
        "".join(
            json.dumps(
                {
                    "timestamp": round(1000 * (late_s + gap_s * (number - 1))) if number else 0,
                    "input_length": 512 * len(chain),
                    "output_length": 1,
                    "hash_ids": chain,
                }
            )
            + "\n"
            for number, chain in enumerate(chains)
        )
    )
    base = Scenario().changed(
        workload={
            "trace": str(trace),
            "requests": len(chains),
            "start_s": 0.0,
            "scheduler": "round_robin",
            "seed": 0,
        },
        model={"gpu": "h800"},
        nodes={"count": 4},
        storage={"kind": "peers"},
    )
    return simulate(base.changed(**tables))


def found(result: SimResult) -> dict[str, int]:
    return {source: count for source, count in result.blocks.items() if count}


CROWD = [list(range(1, 21))] * 4
"""After the first, three nodes ask at nearly the same time for what only the first holds."""


def sent_blocks(result: SimResult) -> int:
    return round(result.storage_egress_bytes / COST.block_bytes)
