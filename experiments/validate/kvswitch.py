"""KVSwitch's routing by prefix: its workload, and rows for what does not depend on its network's delays.

The workload is that of kvswitch/eval/workload.py: a share of the prompts begins with one of a few system
prompts, arrivals are a Poisson process. ShareGPT itself is not in this project: lengths are drawn with the
means of the vLLM paper (arXiv 2309.06180: prompts of 161 tokens, answers of 338), lognormal with an assumed
spread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from math import log
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from experiments.simulator.result import SimResult
from experiments.simulator.scenario import Scenario, load_scenario
from experiments.simulator.simulation import simulate
from experiments.validate.rows import Row

GROUPS, GROUP_TOKENS = 16, 512
SHARED = 0.8
"""Of the prompts, that begin with one of the system prompts."""
RATE_PER_S = 200.0
WARM_PER_GROUP = 20
"""Requests to each group before the measured ones."""
WARM_GAP_S = 0.002
"""They come at once; a router takes about so long for one (L7-PA less L7-RR in the notebook's medians)."""
PROMPT_TOKENS, ANSWER_TOKENS, SPREAD = 161.0, 338.0, 1.0
MOST_PROMPT_TOKENS, MOST_ANSWER_TOKENS = 2048, 256
SEEDS = range(1, 6)

# Notebook result_analysis.ipynb, experiment 2 at 200 requests/s: TTFT p95 in s, share of prompt tokens held.
PUBLISHED = {
    "random": ("L4-ECMP", 0.3333, 0.495),
    "round_robin": ("L7-RR", 0.1055, 0.523),
    "pinned": ("L7-PA", 0.5605, 0.758),
    "spread": ("KVSwitch", 0.1365, 0.601),
}
NOTE = (
    "KVSwitch: workers' times, budgets and caches are those of its repository; lengths of prompts and "
    "answers are drawn, not ShareGPT's. Delays of its emulated network and of its software router are not "
    "simulated, and as they are about 8 of the 22 ms of its medians, there are no rows for medians. Held "
    "are blocks of all requests, those that warm up included; published is a mean over requests."
)
TOLERANCE = 0.25


def write_trace(path: Path, requests: int, seed: int) -> float:
    """A trace in blocks of 512 tokens, a group's system prompt being one; when the measured part begins."""
    draw = Random(seed)
    lines, now_s, own = [], 0.0, 1_000_000
    warm = [group for group in range(GROUPS) for _ in range(WARM_PER_GROUP)]
    draw.shuffle(warm)
    start_s = 0.0
    for number in range(len(warm) + requests):
        measured = number >= len(warm)
        if number == len(warm):
            now_s = start_s = now_s + 60.0
        now_s += draw.expovariate(RATE_PER_S) if measured else WARM_GAP_S
        group = warm[number] if not measured else draw.randrange(GROUPS) if draw.random() < SHARED else None
        tokens = min(MOST_PROMPT_TOKENS - GROUP_TOKENS, _length(draw, PROMPT_TOKENS))
        answer = min(MOST_ANSWER_TOKENS, _length(draw, ANSWER_TOKENS)) if measured else 1
        blocks = -(-tokens // 512)
        chain = [] if group is None else [group]
        chain += range(own, own + blocks)
        own += blocks
        record = {
            "timestamp": round(1000 * now_s),
            "input_length": tokens + (0 if group is None else GROUP_TOKENS),
            "output_length": answer,
            "hash_ids": chain,
        }
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines))
    return start_s


def kvswitch(
    trial: Callable[[Scenario], SimResult] = simulate, seeds: Iterable[int] = SEEDS
) -> Iterator[Row]:
    """Tails and shares held under each way to route, means over seeds; and what KVSwitch saves."""
    base, _ = load_scenario(Path(__file__).parent / "scenarios" / "kvswitch.toml")
    tails_s: dict[str, float] = {}
    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        for scheduler, (name, published_s, published_held) in PUBLISHED.items():
            found = []
            for seed in seeds:
                path = Path(folder) / f"{seed}.jsonl"
                write_trace(path, base.workload.requests, seed)
                whole = {"trace": str(path), "requests": 10_000, "start_s": 0.0, "seed": seed}
                found.append(trial(base.changed(workload=whole | {"scheduler": scheduler})))
            warm = GROUPS * WARM_PER_GROUP
            tails_s[scheduler] = sum(_p95(result.ttfts_s[warm:]) for result in found) / len(found)
            held = sum(result.found_share for result in found) / len(found)
            rows.append(_row(name, "TTFT p95, s", published_s, tails_s[scheduler]))
            rows.append(_row(name, "share of blocks held", published_held, held))
    published = 1 - PUBLISHED["spread"][1] / PUBLISHED["pinned"][1]
    saved = 1 - tails_s["spread"] / tails_s["pinned"]
    yield from rows
    yield _row("KVSwitch over L7-PA", "TTFT p95 saved (published: up to)", published, saved)


def _row(name: str, figure: str, published: float, simulated: float) -> Row:
    return Row(f"{name}, 8 workers, 200 requests/s", figure, published, simulated, TOLERANCE, note=NOTE)


def _length(draw: Random, mean: float) -> int:
    return max(1, round(draw.lognormvariate(log(mean) - SPREAD * SPREAD / 2, SPREAD)))


def _p95(values: tuple[float, ...]) -> float:
    return sorted(values)[int(0.95 * len(values))]
