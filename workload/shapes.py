"""Shapes of generated traces, each an endless stream of sessions in order of start."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from workload.adversarial import ADVERSARIAL
from workload.drafts import Draft, Sessions, Shape, lognormal, mixed, starts, zipf_weights
from workload.fan_in import FAN_IN, ShapeError
from workload.services import SERVICES

MAX_PROMPT_TOKENS = 120_000
CHAT_ENDS = 0.48
FIRST_TOKENS = 5000


def conversation(rng: Random, name: str, start_s: float, head: tuple[tuple[str, int], ...]) -> list[Draft]:
    """Return turns that each extend the previous prompt; a turn comes 8 s and a lognormal pause after the
    last."""
    drafts: list[Draft] = []
    now_s, prompt = start_s, head
    while True:
        turn = len(drafts)
        prompt += ((f"{name} user {turn}", lognormal(rng, FIRST_TOKENS if turn == 0 else 900, 1.2)),)
        if sum(tokens for _, tokens in prompt) > MAX_PROMPT_TOKENS:
            return drafts or [Draft(now_s, (*head, (f"{name} short", 600)), 1)]
        output_tokens = lognormal(rng, 280, 0.7)
        drafts.append(Draft(now_s, prompt, output_tokens))
        if rng.random() < CHAT_ENDS:
            return drafts
        prompt += ((f"{name} answer {turn}", output_tokens),)
        now_s += 8.0 + lognormal(rng, 115, 0.8)


def chat(rng: Random, per_s: float) -> Sessions:
    """Yield conversations of a few turns behind one system prompt."""
    for number, start_s in enumerate(starts(rng, per_s * CHAT_ENDS)):
        yield conversation(rng, f"chat {number}", start_s, (("system", 512),))


AGENT_TYPES = 6
AGENT_FAN_OUT = 5.0
AGENT_STEPS = 1.6


def agent_job(rng: Random, name: str, start_s: float, agent: int) -> list[Draft]:
    """Return a burst of sub-agents with the same tools and task, then each one's further steps."""
    tools = (f"tools {agent}", 6150 + 61 * agent % 500)
    task = (f"{name} task", lognormal(rng, 350, 0.8))
    drafts = []
    for worker in range(1 + int(rng.expovariate(1 / AGENT_FAN_OUT))):
        now_s = start_s if worker == 0 else start_s + rng.expovariate(1 / 0.08)
        prompt: tuple[tuple[str, int], ...] = (
            tools,
            task,
            (f"{name} part {worker}", lognormal(rng, 500, 0.9)),
        )
        step = 0
        while True:
            output_tokens = lognormal(rng, 140, 0.7)
            drafts.append(Draft(now_s, prompt, output_tokens))
            if rng.random() < 1 / AGENT_STEPS:
                break
            now_s += 1.0 + rng.expovariate(1 / 12.0)
            found = (f"{name} result {worker}.{step}", lognormal(rng, 500, 0.9))
            prompt += ((f"{name} output {worker}.{step}", output_tokens), found)
            step += 1
    return sorted(drafts)


def agent_jobs(rng: Random, per_s: float) -> Sessions:
    """Yield jobs of a few agent types, each type with its own long tool description."""
    weights = zipf_weights(AGENT_TYPES, 1.0)
    for number, start_s in enumerate(starts(rng, per_s / ((AGENT_FAN_OUT + 0.5) * AGENT_STEPS))):
        agent = rng.choices(range(AGENT_TYPES), weights)[0]
        yield agent_job(rng, f"job {number}", start_s, agent)


def one_shots(rng: Random, per_s: float, median_tokens: float, label: str) -> Sessions:
    """Yield long prompts that are never asked again."""
    for number, start_s in enumerate(starts(rng, per_s)):
        prompt = ((f"{label} {number}", min(MAX_PROMPT_TOKENS, lognormal(rng, median_tokens, 0.8))),)
        yield [Draft(start_s, prompt, lognormal(rng, 140, 0.7))]


def agents(rng: Random, per_s: float) -> Sessions:
    """Yield bursts of jobs behind a few huge shared prefixes, which suit the pool, and some one-shot
    prompts."""
    return mixed(agent_jobs(rng, 0.75 * per_s), one_shots(rng, 0.25 * per_s, 7500, "single"))


PASSAGE_TOKENS = 512
"""Tokens of a passage: as many as a block's, so that a passage is a chunk wherever it stands."""
RAG_DOCUMENTS = 2000
RAG_PICKS = 4


def rag(rng: Random, per_s: float) -> Sessions:
    """Yield questions over documents of a common corpus, the best match often first, the others in any
    order."""
    sizes = [lognormal(rng, 1100, 0.6) for _ in range(RAG_DOCUMENTS)]
    weights = zipf_weights(RAG_DOCUMENTS, 0.9)
    for number, start_s in enumerate(starts(rng, per_s)):
        topic = rng.choices(range(RAG_DOCUMENTS), weights)[0]
        # The documents of a topic are a fixed neighbourhood; a question picks some of them in its own order.
        near = [(topic * 7 + offset * offset * 31) % RAG_DOCUMENTS for offset in range(6)]
        picked = (
            [near[0], *rng.sample(near[1:], RAG_PICKS - 1)]
            if rng.random() < 0.7
            else rng.sample(near, RAG_PICKS)
        )
        documents = tuple((f"document {document}", sizes[document]) for document in dict.fromkeys(picked))
        prompt = (("system", 512), *documents, (f"question {number}", lognormal(rng, 60, 0.5)))
        yield [Draft(start_s, prompt, lognormal(rng, 220, 0.6))]


PASSAGE_DOCUMENTS = 1000
PASSAGES_OF_DOCUMENT = 8
PASSAGES_RETRIEVED = 10


def passages(rng: Random, per_s: float) -> Sessions:
    """Yield questions over passages of 512 tokens, the best match first: the order of passages varies."""
    weights = zipf_weights(PASSAGE_DOCUMENTS, 0.9)
    for number, start_s in enumerate(starts(rng, per_s)):
        topic = rng.choices(range(PASSAGE_DOCUMENTS), weights)[0]
        # A question matches its topic's document best, and a neighbouring document somewhat less.
        near = [topic, (topic * 7 + 31) % PASSAGE_DOCUMENTS]
        scores = {
            f"passage {document}.{part}": rng.gauss(0.7 if document == topic else 0.0, 0.5)
            for document in dict.fromkeys(near)
            for part in range(PASSAGES_OF_DOCUMENT)
        }
        best = sorted(scores, key=lambda name: -scores[name])[:PASSAGES_RETRIEVED]
        prompt = (
            ("system", PASSAGE_TOKENS),
            *((name, PASSAGE_TOKENS) for name in best),
            (f"question {number}", lognormal(rng, 60, 0.5)),
        )
        yield [Draft(start_s, prompt, lognormal(rng, 220, 0.6))]


def scan(rng: Random, per_s: float) -> Sessions:
    """Yield chats disturbed by scans, which read a corpus through, every document once."""

    def scans() -> Sessions:
        for number, start_s in enumerate(starts(rng, 0.4 * per_s / 120)):
            now_s, drafts = start_s, []
            for document in range(60 + rng.randrange(120)):
                size = min(MAX_PROMPT_TOKENS, lognormal(rng, 14_000, 0.5))
                prompt = (("scan system", 512), (f"scan {number}.{document}", size))
                drafts.append(Draft(now_s, prompt, lognormal(rng, 80, 0.5)))
                now_s += rng.expovariate(1 / 0.4)
            yield drafts

    return mixed(chat(rng, 0.6 * per_s), scans())


DRIFT_PREFIXES = 400
DRIFT_ALIVE = 40
DRIFT_STEP_S = 12.0


def drift(rng: Random, per_s: float) -> Sessions:
    """Yield requests behind shared prefixes whose popularity drifts: every few seconds one replaces
    another."""
    weights = zipf_weights(DRIFT_ALIVE, 0.8)
    order = list(range(DRIFT_ALIVE))
    rng.shuffle(order)
    for number, start_s in enumerate(starts(rng, per_s)):
        oldest = int(start_s / DRIFT_STEP_S)
        prefix = (oldest + order[rng.choices(range(DRIFT_ALIVE), weights)[0]]) % DRIFT_PREFIXES
        tokens = 2000 + 397 * prefix % 8000
        prompt = ((f"prefix {prefix}", tokens), (f"request {number}", lognormal(rng, 900, 0.8)))
        yield [Draft(start_s, prompt, lognormal(rng, 200, 0.7))]


def flash(rng: Random, per_s: float) -> Sessions:
    """Yield chats and, from time to time, a crowd that asks for one new long prefix within seconds."""

    def crowds() -> Sessions:
        for number, start_s in enumerate(starts(rng, 0.4 * per_s / 100)):
            topic = (f"event {number}", lognormal(rng, 9000, 0.5))
            arrivals = sorted(rng.expovariate(1 / 8.0) for _ in range(40 + rng.randrange(120)))
            yield [
                Draft(
                    start_s + delay_s,
                    (topic, (f"event {number} asked {person}", lognormal(rng, 200, 0.8))),
                    lognormal(rng, 220, 0.7),
                )
                for person, delay_s in enumerate([0.0, *arrivals])
            ]

    return mixed(chat(rng, 0.6 * per_s), crowds())


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("agents", "bursts of agent jobs behind a few huge shared tool descriptions", 6.5, agents),
        Shape("chat", "conversations of several turns behind one system prompt", 3.3, chat),
        Shape("rag", "questions over shared documents in varying order", 4.0, rag, "document "),
        Shape("scan", "chats disturbed by one-shot scans of many long documents", 4.0, scan),
        Shape("drift", "shared prefixes whose popularity drifts slowly", 5.0, drift),
        Shape("flash", "chats with flash crowds on a new prefix", 5.0, flash),
    )
}
ALL_SHAPES = {**SHAPES, **ADVERSARIAL}
"""Shapes on which policies were tuned, with other seeds."""
COMPARED_SHAPES = {**ALL_SHAPES, SERVICES.name: SERVICES}
"""Shapes on which policies are compared."""
PASSAGES = Shape(
    "passages", "questions over passages that fill blocks, in any order", 4.0, passages, "passage "
)
FAN_IN_SHAPES = {name: fan_in.shape() for name, fan_in in FAN_IN.items()}
PLAYED_SHAPES = {**SHAPES, PASSAGES.name: PASSAGES, **FAN_IN_SHAPES}
"""Shapes of real use, the shape made for blending, and those with many readers of the same blocks."""
EVERY_SHAPE = {**COMPARED_SHAPES, PASSAGES.name: PASSAGES, **FAN_IN_SHAPES}


def find_shape(text: str, among: Mapping[str, Shape] = EVERY_SHAPE) -> Shape:
    """Return the shape that `text` names, perhaps with parameters: `swarm:sub_agents=64,within_ms=50`.

    Raises ShapeError for an unknown name or parameter.
    """
    name, _, given = text.partition(":")
    if name not in among:
        raise ShapeError(f"there is no {name!r:.40}: choose one of {', '.join(among)}")
    if not given:
        return among[name]
    if name not in FAN_IN:
        raise ShapeError(f"{name} has no parameters: leave out {given!r:.40}")
    pairs = [part.partition("=") for part in given.split(",")]
    return FAN_IN[name].changed({key.strip(): value.strip() for key, _, value in pairs}).shape()


def played_shape(text: str) -> str:
    """Return `text` if it names a shape that systems are run with; raises ShapeError otherwise."""
    find_shape(text, PLAYED_SHAPES)
    return text
