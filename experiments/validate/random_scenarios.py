"""Scenarios drawn at random by number, from ranges in which two cores can emulate them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hostlib.model.gate import ANSWERS, HINTS, HOMES
from scenario import GB, Scenario
from scenario.tables import SWITCHES
from workload.schedule import CONDUCTOR, SCHEDULERS, SESSIONS
from workload.shapes import SHAPES

BLOCK_GB = 512 * 163_840 / GB
"""GB of a block of llama3-70b-fp8: 512 tokens of 160 KiB."""
FIRST_EXTENDED = 76
"""First number whose scenario also draws what the study's settings have.

That is nodes that ask first or that lend, a queue for requests, leaves and spines. Scenarios with smaller
numbers are unchanged, because some have been played.
"""
LEAF_COUNTS, SPINE_COUNTS = (2, 3), (1, 2)
"""Numbers of leaves and spines: few, because every switch takes CPU time of the two cores."""


def draw(number: int) -> Scenario:
    """Return the scenario of this number, always the same one."""
    random = Random(f"validate {number}")
    shape = random.choice(list(SHAPES))
    nodes = random.randint(2, 8)
    named = replace(Scenario(), name=f"drawn {number}: {shape}, {nodes} nodes")
    drawn = named.changed(
        workload={
            "shape": shape,
            "requests": random.randint(100, 300),
            "scheduler": random.choice([name for name in SCHEDULERS if name != SESSIONS]),
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
    return drawn if number < FIRST_EXTENDED else _extended(drawn, random)


def _extended(drawn: Scenario, random: Random) -> Scenario:
    """Return the scenario with more drawn: nodes that ask first, or lend, use the gate that compares.

    With the conductor as scheduler, nodes do neither.
    """
    kind, hints = random.choice(("stores", "peers")), random.choice(HINTS)
    topology = random.choice(("star", "leafspine"))
    leaves, spines = random.choice(LEAF_COUNTS), random.choice(SPINE_COUNTS)
    found = drawn.changed(network={"requests_first": random.choice((False, True)), "topology": topology})
    if topology == "leafspine":
        found = found.changed(network={"leaves": leaves, "spines": spines})
    if drawn.workload.scheduler == CONDUCTOR:
        return found
    if kind == "peers":
        lent = found.changed(storage={"kind": kind}, direct={"front": SWITCHES})
        return lent.changed(nodes={"gate": "compare", "hints": HOMES})
    return found if hints == ANSWERS else found.changed(nodes={"gate": "compare", "hints": hints})


def _blocks(count: int) -> float:
    return (count + 0.5) * BLOCK_GB
