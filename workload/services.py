"""Mixes of services whose parameters the seed draws, so a policy tuned on some of these traces knows only
that the next one is a mix.

A mix has two to five services of five kinds. The seed draws the lengths of prompts, pauses and conversations,
the numbers and popularity of documents, tools and templates, the services' shares of the requests, and how
much their rates vary. Each range spans a decade or more where that is plausible. The ranges are assumptions,
not measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate, count
from random import Random

from workload.drafts import Draft, Sessions, Shape, lognormal, mixed, zipf_weights

MAX_PROMPT_TOKENS = 120_000
LEAST_SERVICES, MOST_SERVICES = 2, 5
LEAST_WAVE_S, MOST_WAVE_S = 120.0, 3600.0
"""Range in seconds of the period with which a service's rate rises and falls."""
GOLDEN_RATIO = 0.6180339887
"""Number whose multiples, modulo 1, are spread evenly over [0, 1)."""

Prompt = tuple[tuple[str, int], ...]


def decades(rng: Random, least: float, most: float) -> float:
    """Return a random number between `least` and `most`, uniform in its logarithm."""
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def tokens_of(prompt: Prompt) -> int:
    """Return the number of tokens of a prompt."""
    return sum(tokens for _, tokens in prompt)


def waves(rng: Random, per_s: float) -> Callable[[], float]:
    """Return a function that returns one arrival time in seconds after the other.

    Their rate rises and falls around `per_s`; they are drawn by thinning.
    """
    depth = rng.uniform(0.0, 0.9)
    period_s, phase = decades(rng, LEAST_WAVE_S, MOST_WAVE_S), rng.uniform(0.0, 2 * math.pi)
    now_s = 0.0

    def next_s() -> float:
        nonlocal now_s
        while True:
            now_s += rng.expovariate(per_s * (1 + depth))
            if rng.random() * (1 + depth) <= 1 + depth * math.sin(2 * math.pi * now_s / period_s + phase):
                return now_s

    return next_s


def conversations(rng: Random, per_s: float, label: str) -> Sessions:
    """Yield conversations whose turns extend the prompt, behind the system prompts of several applications.

    Some turns are asked again.
    """
    apps = round(decades(rng, 1, 100))
    heads = [round(decades(rng, 50, 6000)) for _ in range(apps)]
    weights = zipf_weights(apps, rng.uniform(0.3, 1.3))
    ends, pause_s, spread = rng.uniform(0.15, 0.8), decades(rng, 5, 600), rng.uniform(0.4, 1.4)
    first, later, answer = decades(rng, 100, 8000), decades(rng, 50, 3000), decades(rng, 50, 800)
    again = rng.choice([0.0, rng.uniform(0.0, 0.3)])
    persistence = rng.uniform(1.0, 1.2)
    next_s = waves(rng, per_s * ends)
    for number in count(1):
        app, now_s, ends_now = rng.choices(range(apps), weights)[0], next_s(), ends
        prompt: Prompt = ((f"{label} system {app}", heads[app]),)
        drafts: list[Draft] = []
        for turn in count():
            asked = lognormal(rng, first if turn == 0 else later, 1.1)
            prompt += ((f"{label} {number} user {turn}", asked),)
            if tokens_of(prompt) > MAX_PROMPT_TOKENS:
                break
            output_tokens = lognormal(rng, answer, 0.7)
            drafts.append(Draft(now_s, prompt, output_tokens))
            while rng.random() < again:
                now_s += 2.0 + rng.expovariate(1 / 20.0)
                drafts.append(Draft(now_s, prompt, output_tokens))
            if rng.random() < ends_now:
                break
            ends_now /= persistence
            prompt += ((f"{label} {number} answer {turn}", output_tokens),)
            now_s += 2.0 + lognormal(rng, pause_s, spread)
        if drafts:
            yield drafts


def jobs(rng: Random, per_s: float, label: str) -> Sessions:
    """Yield agent jobs: workers that start together behind the same tools and task, and each one's steps."""
    types = round(decades(rng, 1, 60))
    tools = [round(decades(rng, 300, 15_000)) for _ in range(types)]
    weights = zipf_weights(types, rng.uniform(0.3, 1.5))
    fan_out, steps = rng.uniform(0.0, 8.0), rng.uniform(1.0, 12.0)
    task, found, pause_s = decades(rng, 50, 4000), decades(rng, 100, 3000), decades(rng, 1, 60)
    next_s = waves(rng, per_s / ((1 + fan_out) * steps))
    for number in count(1):
        kind, start_s = rng.choices(range(types), weights)[0], next_s()
        name = f"{label} {number}"
        shared = ((f"{label} tools {kind}", tools[kind]), (f"{name} task", lognormal(rng, task, 0.8)))
        drafts = []
        for worker in range(1 + (int(rng.expovariate(1 / fan_out)) if fan_out > 0.1 else 0)):
            now_s = start_s + (0.0 if worker == 0 else rng.expovariate(1.0))
            prompt: Prompt = (*shared, (f"{name} part {worker}", lognormal(rng, 300, 0.9)))
            step = 0
            while tokens_of(prompt) <= MAX_PROMPT_TOKENS:
                output_tokens = lognormal(rng, 140, 0.7)
                drafts.append(Draft(now_s, prompt, output_tokens))
                if rng.random() < 1 / steps:
                    break
                now_s += 0.5 + rng.expovariate(1 / pause_s)
                result = lognormal(rng, found, 0.9)
                prompt += (
                    (f"{name} output {worker}.{step}", output_tokens),
                    (f"{name} result {worker}.{step}", result),
                )
                step += 1
        if drafts:
            yield sorted(drafts)


def questions(rng: Random, per_s: float, label: str) -> Sessions:
    """Yield questions over a few documents each, the best match first.

    Which documents are popular changes slowly or not at all.
    """
    documents = round(decades(rng, 50, 20_000))
    median = decades(rng, 200, 10_000)
    sizes = [min(40_000, lognormal(rng, median, 0.7)) for _ in range(documents)]
    sums = list(accumulate(zipf_weights(documents, rng.uniform(0.4, 1.3))))
    picks, turnover_s = rng.randrange(1, 5), decades(rng, 1, 10_000)
    head = round(decades(rng, 50, 2000))
    goes_on = rng.uniform(0.0, 0.6)
    next_s = waves(rng, per_s * (1 - goes_on))
    for number in count(1):
        now_s, drafts = next_s(), []
        moved = int(now_s / turnover_s)
        ranks = [rng.choices(range(documents), cum_weights=sums)[0] for _ in range(picks)]
        picked = dict.fromkeys((rank + moved) % documents for rank in ranks)
        context = tuple((f"{label} document {one}", sizes[one]) for one in picked)
        if tokens_of(context) > MAX_PROMPT_TOKENS:
            context = context[:1]
        for turn in count():
            question = (f"{label} {number} question {turn}", lognormal(rng, 60, 0.8))
            prompt = ((f"{label} system", head), *context, question)
            drafts.append(Draft(now_s, prompt, lognormal(rng, 220, 0.6)))
            if rng.random() >= goes_on:
                break
            now_s += 5.0 + lognormal(rng, 60, 1.0)
        yield drafts


def templates(rng: Random, per_s: float, label: str) -> Sessions:
    """Yield short inputs, each behind one of many prompts with examples; prompts are replaced from time to
    time."""
    alive, life_s = round(decades(rng, 5, 2000)), decades(rng, 300, 100_000)
    weights = zipf_weights(alive, rng.uniform(0.3, 1.4))
    median, own = decades(rng, 300, 8000), decades(rng, 30, 3000)
    next_s = waves(rng, per_s)
    for number in count(1):
        now_s = next_s()
        rank = rng.choices(range(alive), weights)[0]
        name = f"{label} template {rank}.{int(now_s / life_s + rank * GOLDEN_RATIO % 1.0)}"
        prompt = (
            (name, lognormal(Random(name), median, 0.8)),
            (f"{label} {number}", lognormal(rng, own, 0.9)),
        )
        yield [Draft(now_s, prompt, lognormal(rng, 200, 0.7))]


def batches(rng: Random, per_s: float, label: str) -> Sessions:
    """Yield batches of many documents one after the other, each with a few questions in a row."""
    length = round(decades(rng, 10, 400))
    median, asked = decades(rng, 1000, 30_000), rng.choice([1, 1, 2, 4])
    pause_s = decades(rng, 0.2, 5)
    rounds = rng.choice([1, 1, 2])
    next_s = waves(rng, per_s / (length * asked * rounds))
    for number in count(1):
        now_s, drafts = next_s(), []
        for turn in range(rounds):
            for document in range(length):
                name = f"{label} {number}.{document}"
                tokens = min(MAX_PROMPT_TOKENS, lognormal(Random(name), median, 0.6))
                for question in range(asked):
                    asks = (f"{label} q {turn}.{question}", 40)
                    prompt = ((f"{label} system", 512), (name, tokens), asks)
                    drafts.append(Draft(now_s, prompt, lognormal(rng, 100, 0.5)))
                    now_s += rng.expovariate(1 / pause_s)
        yield drafts


KINDS = (conversations, jobs, questions, templates, batches)


def services(rng: Random, per_s: float) -> Sessions:
    """Yield the sessions of a mix of services, each of some kind and with some share of the requests."""
    shares = [rng.expovariate(1.0) for _ in range(rng.randint(LEAST_SERVICES, MOST_SERVICES))]
    streams = []
    for number, share in enumerate(shares):
        kind = rng.choice(KINDS)
        own = Random(rng.random())
        streams.append(kind(own, per_s * share / sum(shares), f"{kind.__name__} {number}"))
    return mixed(*streams)


SERVICES = Shape(
    "services", "a mix of services, all parameters of which are drawn by the seed", 5.0, services
)
