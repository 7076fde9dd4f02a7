"""The workload of KVSwitch's evaluation, as exp/run_eval.py and kvswitch/eval/workload.py make it.

A share of the prompts begins with one of a few system prompts. Prompts that do not fit a packet are left out.
Arrivals are a Poisson process. The first requests of each system prompt are sent once before, all at once and
with answers of one token; those that buffers on the way have no room for are sent again later. Groups and
arrivals are drawn by Python's generator from the published seed, so that they are the published ones.
ShareGPT itself is not in this project. Lengths are drawn from the quantiles that the repository publishes,
and differ from seed to seed.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import exp, log
from pathlib import Path
from random import Random

GROUPS, GROUP_TOKENS = 16, 512
PUBLISHED_SEED = 42
"""Seed of the groups (--seed); the seed of the arrivals is the next one."""
OVERSHOOT = 1.5
"""Number of prompts made for each one wanted, before those that are too large are left out."""
ROUTING_S = 4.9e-3 / 4096
"""Seconds that a router which looks at prefixes takes for each token of a prompt.

The source is figure 2b of the paper, and by length notebooks/background_motivation.ipynb. The first requests
come at once, so that the router takes one after the other.
"""
PAUSE_S = 2.0
"""Seconds of pause after the first requests."""
RETRY_S = 90.0
"""Seconds after which a client without an answer asks again; it tries three times in all.

It is a third of --client-timeout (workload_client.py).
"""
BURST = 317
Through = tuple[tuple[int, ...], ...]
"""Numbers of BURST first requests that came through at each try, by play of the published programs."""
BLOCK_TOKENS = 16
QUANTILE_SHARES = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
PROMPTS = (2, 12, 24, 79, 958, 2474, 161_272)
ANSWERS = (2, 143, 273, 419, 745, 771, 22_268)
"""Tokens of ShareGPT's first turns at the quantiles QUANTILE_SHARES (notebooks/dataset_exploration.ipynb)."""
MOST_PROMPT_TOKENS, MOST_ANSWER_TOKENS = 2048, 256
MOST_BYTES, OTHER_BYTES, TOKEN_BYTES = 8900, 90, 5.9
"""Bytes of a packet: at most (--max-kvswitch-payload), without its token ids, and of a token id in JSON."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Variables of an experiment; the defaults are the values that it does not vary."""

    rate_per_s: float = 200.0
    shared: float = 0.8
    """Share of the prompts that begin with one of the system prompts."""
    requests: int = 500
    warm_per_group: int = 20
    """Number of requests to each group that are sent before the measured ones."""
    workers: int = 8
    held_tokens: int | None = 8192
    """Number of tokens that a worker holds; None: without limit."""
    budget_tokens: int = 8192


@dataclass(frozen=True, slots=True)
class Way:
    """Way of requests to workers."""

    routing_s: float = 0.0
    """Seconds of a router for each token of a prompt; it passes the first requests on one after the other."""
    through: Through = ((BURST,),)
    """Plays whose losses are used in turn, by seed."""
    in_order: bool = False
    """Whether a buffer takes the first requests of a burst; else chance decides."""


class _Prompt:
    """A request that fits a packet."""

    __slots__ = ("answer", "chain", "group", "tokens")

    def __init__(self, group: int | None, tokens: int, answer: int, chain: list[int]) -> None:
        self.group, self.tokens, self.answer, self.chain = group, tokens, answer, chain


def write_trace(path: Path, setting: Setting, seed: int, way: Way = Way()) -> tuple[int, list[int]]:
    """Write a trace in blocks of 16 tokens.

    Return the number of requests before the measured ones, and the tokens of each measured prompt.
    """
    measured = list(_prompts(setting, seed))[: setting.requests]
    of_group = Counter[int | None]()
    first: list[_Prompt] = []
    for prompt in measured:
        of_group[prompt.group] += 1
        if prompt.group is not None and of_group[prompt.group] <= setting.warm_per_group:
            first.append(prompt)
    lines: list[str] = []
    now_s = 0.0
    for attempt, burst in enumerate(_tries(first, way, seed)):
        now_s = max(now_s, attempt * RETRY_S)
        for prompt in burst:
            lines.append(_line(now_s, prompt, 1))
            now_s += way.routing_s * prompt.tokens
    warm, arrivals = len(lines), Random(PUBLISHED_SEED + 1)
    now_s += PAUSE_S if warm else 0.0
    for prompt in measured:
        lines.append(_line(now_s, prompt, prompt.answer))
        now_s += arrivals.expovariate(setting.rate_per_s)
    path.write_text("".join(lines))
    return warm, [prompt.tokens for prompt in measured]


def _tries(first: Sequence[_Prompt], way: Way, seed: int) -> Iterator[list[_Prompt]]:
    """Yield the requests that come through at each try; those that are left after the last are lost."""
    left, sent, draw = list(first), BURST, Random(seed)
    for arrived in way.through[seed % len(way.through)]:
        number = round(len(left) * min(1.0, arrived / sent)) if sent else 0
        chosen = set(range(number) if way.in_order else draw.sample(range(len(left)), number))
        yield [prompt for place, prompt in enumerate(left) if place in chosen]
        left = [prompt for place, prompt in enumerate(left) if place not in chosen]
        sent -= arrived


def _prompts(setting: Setting, seed: int) -> Iterator[_Prompt]:
    """Yield the prompts that fit a packet, with full blocks."""
    groups, lengths, own = Random(PUBLISHED_SEED), Random(seed), count(1_000_000)
    for _ in range(int(setting.requests * OVERSHOOT)):
        group = groups.choice(range(GROUPS)) if groups.random() < setting.shared else None
        groups.expovariate(setting.rate_per_s)  # draws an arrival; arrivals are drawn again later
        tokens = min(MOST_PROMPT_TOKENS, round(quantile(PROMPTS, lengths.random(), logarithmic=True)))
        answer = min(MOST_ANSWER_TOKENS, round(quantile(ANSWERS, lengths.random())))
        tokens = min(MOST_PROMPT_TOKENS, tokens + (0 if group is None else GROUP_TOKENS))
        if OTHER_BYTES + tokens * TOKEN_BYTES > MOST_BYTES:
            continue
        shared = range(0 if group is None else GROUP_TOKENS // BLOCK_TOKENS)
        chain = [1000 * (group or 0) + number for number in shared]
        chain += [next(own) for _ in range(tokens // BLOCK_TOKENS - len(shared))]
        yield _Prompt(group, tokens, answer, chain or [next(own)])


def _line(now_s: float, prompt: _Prompt, answer: int) -> str:
    record = {
        "chat_id": 0,
        "parent_chat_id": -1,
        "turn": 1,
        "timestamp": now_s,
        "input_length": prompt.tokens,
        "output_length": answer,
        "hash_ids": prompt.chain,
    }
    return json.dumps(record) + "\n"


def quantile(values: Sequence[float], share: float, logarithmic: bool = False) -> float:
    """Return the value at a share, interpolated between the values at QUANTILE_SHARES."""
    place = min(bisect_right(QUANTILE_SHARES, share), len(QUANTILE_SHARES) - 1)
    low, high = QUANTILE_SHARES[place - 1], QUANTILE_SHARES[place]
    part = (share - low) / (high - low)
    below, above = values[place - 1], values[place]
    if logarithmic:
        return exp(log(below) + part * (log(above) - log(below)))
    return below + part * (above - below)
