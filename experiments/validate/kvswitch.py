"""KVSwitch's routing by prefix: its workload, and rows for the tails and shares held that it publishes.

The workload is that of kvswitch/eval/workload.py and exp/run_eval.py: a share of the prompts begins with one
of a few system prompts, what does not fit a packet is left out, arrivals are a Poisson process, and the first
requests of each system prompt are sent once before, all at once and with answers of one token. ShareGPT
itself is not in this project: lengths are drawn from the quantiles that the repository publishes of it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from math import exp, log
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
"""Requests to each group that are sent before the measured ones."""
ROUTING_S = 4.9e-3 / 4096
"""Of a router that looks at prefixes, for each token of a prompt: figure 2b of the paper. The first requests
come at once, so it takes one after the other. Later this is left out: it is less than a millisecond."""
PAUSE_S = 2.0
"""Behind them."""
BLOCK_TOKENS = 16
SHARES = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
PROMPTS = (2, 12, 24, 79, 958, 2474, 161_272)
ANSWERS = (2, 143, 273, 419, 745, 771, 22_268)
"""Tokens at these shares of ShareGPT's first turns: notebooks/dataset_exploration.ipynb."""
MOST_PROMPT_TOKENS, MOST_ANSWER_TOKENS = 2048, 256
MOST_BYTES, OTHER_BYTES, TOKEN_BYTES = 8900, 90, 5.9
"""--max-kvswitch-payload; a packet without its token ids; one of these, as the system prompts' in JSON."""
LINK_S = 0.5e-3
"""--delay, of each link: four to a worker, six by way of a router."""
SEEDS = range(1, 21)

# Notebook result_analysis.ipynb has the same setting three times, in experiments 2, 4b and 4c: TTFT p95 in s
# and share of prompt tokens held of each; last the links there and back.
PUBLISHED = {
    "random": ("L4-ECMP", (0.3333, 0.2832, 0.2500), (0.495, 0.517, 0.520), 8),
    "round_robin": ("L7-RR", (0.1055, 0.1057, 0.1088), (0.523, 0.531, 0.528), 12),
    "longest_prefix": ("L7-PA", (0.5605, 0.2414, 0.3094), (0.758, 0.753, 0.754), 12),
    "load_reports": ("KVSwitch", (0.1365, 0.2695, 0.1000), (0.601, 0.577, 0.606), 8),
}
SAVED = 1 - 0.1365 / 0.5605
"""Of the tail, at best: experiment 2."""
NOTE = (
    "KVSwitch: workers, routers, rules and workload are those of its repository, lengths of prompts and "
    "answers are drawn from the quantiles of ShareGPT that it publishes. Published figures are means of the "
    "three times that its notebook has this setting (p95 of KVSwitch itself: 0.10, 0.14 and 0.27 s), "
    "simulated ones of 20 seeds. Of its emulated network there is the delay of links alone; what its Python "
    "and its switches take is not simulated."
)
TOLERANCE = 0.25


def write_trace(path: Path, requests: int, seed: int, routing_s: float = 0.0) -> int:
    """A trace in blocks of 16 tokens; how many requests come before the measured ones. A router that takes
    `routing_s` for each token of a prompt passes them on one after the other."""
    draw = Random(seed)
    own = count(1_000_000)
    measured = [_request(draw, own) for _ in range(requests)]
    of_group = Counter[int | None]()
    warm = []
    for group, tokens, _, chain in measured:
        of_group[group] += 1
        if group is not None and of_group[group] <= WARM_PER_GROUP:
            warm.append((group, tokens, 1, chain))
    now_s, lines = 0.0, []
    for number, (_, tokens, answer, chain) in enumerate([*warm, *measured]):
        if number == len(warm):
            now_s += PAUSE_S
        lines.append(_line(now_s, tokens, answer, chain))
        now_s += routing_s * tokens if number < len(warm) else draw.expovariate(RATE_PER_S)
    path.write_text("".join(lines))
    return len(warm)


def _request(draw: Random, own: Iterator[int]) -> tuple[int | None, int, int, list[int]]:
    """Group, tokens of the prompt and of the answer, and full blocks of one that fits a packet."""
    while True:
        tokens = min(MOST_PROMPT_TOKENS, round(quantile(PROMPTS, draw.random(), logarithmic=True)))
        answer = min(MOST_ANSWER_TOKENS, round(quantile(ANSWERS, draw.random())))
        group = draw.randrange(GROUPS) if draw.random() < SHARED else None
        tokens = min(MOST_PROMPT_TOKENS, tokens + (0 if group is None else GROUP_TOKENS))
        if OTHER_BYTES + tokens * TOKEN_BYTES <= MOST_BYTES:
            break
    shared = range(0 if group is None else GROUP_TOKENS // BLOCK_TOKENS)
    chain = [1000 * (group or 0) + number for number in shared]
    chain += [next(own) for _ in range(tokens // BLOCK_TOKENS - len(shared))]
    return group, tokens, answer, chain or [next(own)]


def _line(now_s: float, tokens: int, answer: int, chain: list[int]) -> str:
    record = {
        "chat_id": 0,
        "parent_chat_id": -1,
        "turn": 1,
        "timestamp": now_s,
        "input_length": tokens,
        "output_length": answer,
        "hash_ids": chain,
    }
    return json.dumps(record) + "\n"


def quantile(values: Sequence[float], share: float, logarithmic: bool = False) -> float:
    """Between the values at SHARES."""
    place = min(bisect_right(SHARES, share), len(SHARES) - 1)
    low, high = SHARES[place - 1], SHARES[place]
    part = (share - low) / (high - low)
    below, above = values[place - 1], values[place]
    if logarithmic:
        return exp(log(below) + part * (log(above) - log(below)))
    return below + part * (above - below)


def kvswitch(
    trial: Callable[[Scenario], SimResult] = simulate, seeds: Iterable[int] = SEEDS
) -> Iterator[Row]:
    """Tails and shares held under each way to route, means over seeds; and what KVSwitch saves."""
    base, _ = load_scenario(Path(__file__).parent / "scenarios" / "kvswitch.toml")
    tails_s: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for scheduler, (name, published_s, published_held, links) in PUBLISHED.items():
            tails, held = [], []
            for seed in seeds:
                path = Path(folder) / f"{seed}.jsonl"
                routing_s = ROUTING_S if scheduler == "longest_prefix" else 0.0
                warm = write_trace(path, base.workload.requests, seed, routing_s)
                whole = {"trace": str(path), "requests": 10_000, "start_s": 0.0, "seed": seed}
                result = trial(base.changed(workload=whole | {"scheduler": scheduler}))
                tails.append(_p95(result.ttfts_s[warm:]))
                held.append(_mean(result.found[warm:]))
            tails_s[scheduler] = _mean(tails) + links * LINK_S
            yield _row(name, "TTFT p95, s", _mean(published_s), tails_s[scheduler])
            yield _row(name, "share of blocks held", _mean(published_held), _mean(held))
    saved = 1 - tails_s["load_reports"] / tails_s["longest_prefix"]
    yield _row("KVSwitch over L7-PA", "TTFT p95 saved (published: up to)", SAVED, saved)


def _row(name: str, figure: str, published: float, simulated: float) -> Row:
    return Row(f"{name}, 8 workers, 200 requests/s", figure, published, simulated, TOLERANCE, note=NOTE)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]
