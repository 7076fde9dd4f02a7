"""Small scenarios of all kinds, to compare builds of the simulator to the last bit.

    python -m experiments.simulate.kinds

It prints what runs, Python or compiled code, and a line of JSON with the figures of each scenario. A compiled
simulator is used only if it prints what Python prints.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.simulate.emulate import Emulator
from scenario import Scenario, load_scenario
from simulator.compiled import core
from simulator.simulation import simulate

EXAMPLES = Path(__file__).parent / "examples"
AGENTS: dict[str, object] = {"requests": 300, "load": 4.0}


def _scenario(**tables: dict[str, object]) -> Scenario:
    return Scenario().changed(**{**tables, "workload": AGENTS | tables.get("workload", {})})


def generated(requests: int, nodes: int) -> Scenario:
    """Return agents on `nodes` nodes with cache-aware scheduling, which costs most time to simulate.

    Beyond the ports of a star, the topology is leaf-spine.
    """
    fabric = {"topology": "star"} if nodes <= 60 else {"topology": "leafspine", "leaves": 8, "spines": 4}
    return Scenario().changed(
        workload={"requests": requests, "load": nodes / 4, "scheduler": "locality"},
        nodes={"count": nodes},
        network=fabric,
    )


def _example(name: str) -> Scenario:
    return load_scenario(EXAMPLES / f"{name}.toml")[0].changed(workload={"requests": 300})


def kinds() -> dict[str, Scenario]:
    """Return all kinds of scenarios by name."""
    chat: dict[str, object] = {"shape": "chat", "ttft_slo_s": 1.0}
    prompts: dict[str, object] = {"hit_share": 0.6, "prompt_tokens": 4096, "prompt_excess_tokens": 900}
    return {
        "default": _scenario(),
        "a fabric of 256 nodes": generated(250, 256),
        "chat on 256 nodes": generated(250, 256).changed(workload={"shape": "chat", "load": 16.0}),
        "a gate that compares": _scenario(
            workload={"scheduler": "locality", "load": 8.0},
            nodes={"count": 16, "gate": "compare"},
            network={"segments": 4, "requests_first": True},
            control={"report_count": 1, "list_s": 0.1},
        ),
        "a crowded pending table": _scenario(
            workload={"load": 8.0, "scheduler": "round_robin"},
            nodes={"count": 8, "tiers": "inclusive"},
            storage={"count": 1},
            pool={"size_gb": 1.0, "pending_cells": 1, "multicast": False},
            network={"link_gbit_s": 50.0},
        ),
        "reclaim": _scenario(
            pool={"memory": "dram", "size_gb": 8.0, "policy": "lru"},
            control={"eviction": "reclaim", "report_count": 1},
            nodes={"gpu_gb": 2.0, "dram_gb": 2.0, "tiers": "by-value"},
        ),
        "hints and warm nodes": _scenario(
            workload={"scheduler": "balanced", "load": 16.0},
            nodes={"count": 16, "gate": "compare", "hints": "switch", "warm": "multicast", "warm_gb": 2.0},
            storage={"count": 1, "ssd_gb": 0.0},
        ),
        "hot prefixes are pushed": _scenario(
            workload={"scheduler": "round_robin", "load": 16.0},
            nodes={"count": 6, "gpu_gb": 4.0, "dram_gb": 4.0},
            network={"topology": "leafspine", "leaves": 3, "spines": 2, "segments": 2},
            control={"report_count": 1, "push": True},
        ),
        "blocks are expected": _scenario(
            workload={"scheduler": "round_robin", "load": 8.0},
            nodes={"count": 6, "gpu_gb": 4.0, "dram_gb": 4.0},
            network={
                "topology": "leafspine",
                "leaves": 3,
                "spines": 2,
                "segments": 2,
                "requests_first": True,
            },
            pool={"memory": "dram"},
            control={"report_count": 1, "list_s": 0.1, "expects": True, "fill": "idle"},
        ),
        "nodes join and are pushed what the pools hold": _scenario(
            workload={"scheduler": "locality", "load": 16.0},
            nodes={"count": 16, "joining": 6, "gate": "compare", "warm": "pool", "warm_gb": 2.0},
            network={"topology": "leafspine", "leaves": 3, "spines": 2},
            pool={"memory": "dram"},
            control={"report_count": 1},
        ),
        "continuous batching": _scenario(nodes={"decode": "batched", "engine_token_us": 5.0}),
        "steps": _scenario(
            workload=prompts | {"clients": 6, "load": 1.0, "output_tokens": 5, "hits_whole": True},
            model={"gpus": 1, "block_tokens": 512},
            nodes={"count": 2, "gpu_gb": 0.1, "dram_gb": 0.0, "decode": "steps", "loading": "blocking"},
            storage={"kind": "direct"},
            direct={"block_s": 0.01},
        ),
        "a budget and load reports": _scenario(
            workload={"scheduler": "load_reports"}, nodes={"decode": "budget", "gate": "never"}
        ),
        "longest prefixes": _scenario(
            workload={"scheduler": "longest_prefix"}, nodes={"decode": "budget", "gate": "never"}
        ),
        "rules for all prefixes, lent memory": _scenario(
            workload={"scheduler": "load_reports", "load": 8.0},
            routing={"rules": "longest", "admitted": 1, "report_s": 0.05, "late_reports": True, "leaves": 1},
            storage={"kind": "peers"},
            nodes={"gate": "compare", "decode": "batched"},
        ),
        "a pool read directly": _scenario(storage={"kind": "direct"}, direct={"interleaved": False}),
        "a front that keeps": _scenario(storage={"kind": "direct"}, direct={"front": "pool"}),
        "lenders": _scenario(
            storage={"kind": "peers"},
            direct={"front": "switches"},
            nodes={"count": 8, "gate": "compare", "hints": "switch"},
            pool={"memory": "dram", "size_gb": 30.0},
            control={"report_count": 1},
        ),
        "streams": _scenario(
            workload=chat,
            model={
                "name": "llama3-70b",
                "gpu": "h800",
                "codec": "cachegen",
                "level": "adaptive",
                "coder": "cpu",
            },
            network={"link_gbit_s": 40.0},
        ),
        "blending": _scenario(
            workload={"shape": "passages", "scheduler": "round_robin"},
            model={"name": "llama3-70b", "gpu": "h800"},
            nodes={"count": 3, "blend": True, "gate": "compare"},
        ),
        "the conductor": _scenario(workload={"scheduler": "conductor", "ttft_slo_s": 5.0, "load": 8.0}),
        "spread by prefix": _scenario(workload={"scheduler": "spread", "jitter_s": 0.5, "reuse": 0.7}),
        "the emulator's machine": Emulator(Scenario().changed(workload={"requests": 60}), 20_000.0).matched(
            pool=True
        ),
        "the emulator's machine, and blocks are expected": Emulator(
            Scenario().changed(workload={"requests": 60}, control={"expects": True}), 20_000.0
        ).matched(pool=True),
        "the emulator's machine, on which nodes lend": Emulator(
            Scenario().changed(
                workload={"requests": 60},
                storage={"kind": "peers"},
                direct={"front": "switches"},
                nodes={"gate": "compare", "hints": "homes"},
            ),
            20_000.0,
        ).matched(pool=True),
        **{name: _example(name) for name in sorted(path.stem for path in EXAMPLES.glob("*.toml"))},
    }


def figures(scenario: Scenario) -> dict[str, Any]:
    """Return all figures of a scenario except the time that the simulation took."""
    record = asdict(simulate(scenario))
    del record["cpu_s"]
    return record


if __name__ == "__main__":
    print(core())
    for name, scenario in kinds().items():
        print(json.dumps([name, figures(scenario)]), flush=True)
