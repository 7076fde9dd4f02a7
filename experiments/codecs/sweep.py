"""One pool at one size with one codec: what it serves, by replay, and times to first token, by simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from controller.policies import make_policy
from experiments.policies.pools import PolicyPool
from experiments.policies.replay import replay
from scenario import GB, Scenario
from simulator.simulation import simulate
from workload.compression import BlockSizes, find_compression
from workload.cost import CostModel, make_cost_model
from workload.generate import generate

MODEL, GPU = "llama3-70b", "h800"
"""It keeps bfloat16, so the codecs' ratios count in full."""


class Codec(NamedTuple):
    """A codec at a level; "none" for blocks as they are."""

    name: str
    level: int | None = None

    @property
    def label(self) -> str:
        """As tables have it."""
        return self.name if self.level is None else f"{self.name} {self.level}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """Of all blocks that were asked for."""

    prefix_hit: float
    """Share served by the pool, behind prefixes that it served too."""
    sent: float
    """Bytes that storage nodes or recomputation have to make up for, over those of all blocks uncoded."""


def cost_of(codec: Codec, block_tokens: int) -> CostModel:
    """The cost model with coded blocks."""
    plain = make_cost_model(MODEL, GPU, block_tokens)
    sizes = BlockSizes(1, find_compression(*codec), plain.model.kv_dtype_bytes)
    return replace(plain, stored_share=sizes.stored_share)


def replayed(shape: str, requests: int, seed: int, plain_blocks: int, codec: Codec, policy: str) -> Replayed:
    """A pool with the memory of so many blocks as the model keeps them; coded ones count with their mean."""
    trace = generate(shape, seed, requests)
    cost = cost_of(codec, trace.block_tokens)
    blocks = int(plain_blocks / cost.stored_share)
    pool = PolicyPool(make_policy(policy, blocks, seed=seed, cost=cost))
    result = replay(trace, policy, blocks, pool, cost)
    return Replayed(result.prefix_hit, (1 - result.block_hit) * cost.stored_share)


def ttft_ms(
    shape: str, requests: int, seed: int, plain_blocks: int, codec: Codec, coder: str, link_gbit_s: float
) -> float:
    """Median time to first token, with the gate that compares fetching with computing."""
    block_bytes = make_cost_model(MODEL, GPU, 512).block_bytes
    scenario = Scenario().changed(
        workload={"shape": shape, "requests": requests, "seed": seed},
        model={"name": MODEL, "gpu": GPU, "codec": codec.name, "level": codec.level, "coder": coder},
        nodes={"gate": "compare"},
        network={"link_gbit_s": link_gbit_s},
        pool={"size_gb": (plain_blocks + 0.5) * block_bytes / GB},
    )
    return 1000 * simulate(scenario).ttft_s.p50
