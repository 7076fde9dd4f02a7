"""Scenarios that nobody chose: drawn by number, from ranges that two cores carry in the emulator."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from experiments.simulator.scenario import GB, Scenario
from workload.schedule import SCHEDULERS
from workload.shapes import SHAPES

BLOCK_GB = 512 * 163_840 / GB
"""Of llama3-70b-fp8: 512 tokens of 160 KiB."""


def draw(number: int) -> Scenario:
    """The scenario of this number: always the same one."""
    random = Random(f"validate {number}")
    shape = random.choice(list(SHAPES))
    nodes = random.randint(2, 8)
    named = replace(Scenario(), name=f"drawn {number}: {shape}, {nodes} nodes")
    return named.changed(
        workload={
            "shape": shape,
            "requests": random.randint(100, 300),
            "scheduler": random.choice(list(SCHEDULERS)),
            "seed": random.randrange(1 << 16),
        },
        model={"name": "llama3-70b-fp8", "gpu": "h800"},
        nodes={
            "count": nodes,
            "gpu_gb": _blocks(random.randint(16, 128)),
            "dram_gb": _blocks(random.choice((1, 64, 256))),
            "gate": random.choice(("always", "compare")),
        },
        network={"link_gbit_s": random.choice((100.0, 200.0, 400.0))},
        storage={"count": random.randint(1, 3), "dram_gb": _blocks(50_000), "ssd_gb": _blocks(100_000)},
        pool={"size_gb": _blocks(random.choice((128, 512, 2048))), "policy": random.choice(("lru", "reuse"))},
    )


def _blocks(count: int) -> float:
    return (count + 0.5) * BLOCK_GB
