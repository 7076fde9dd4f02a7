"""`make policies EXPLAIN=key`: what became of one block, and why it is where it is at the end.

The policy is `reuse`, fed by a trace (EXPLAIN is the block's id) or by the event log of a live controller
(`EVENTS=<switch>.jsonl`, EXPLAIN is the key in hexadecimal)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from controller.policies import Admit, Event, Hits, HomeLoad, Miss
from controller.policies.eventlog import EventLogError, read_events
from controller.policies.explain import in_words
from controller.policies.reuse import Reuse
from experiments.errors import ExperimentError
from experiments.policies.pools import make_reuse
from experiments.policies.stores import STORES
from workload.cost import CostModel
from workload.keys import home_number
from workload.trace import Trace

SHOWN = 20
"""Turns of the story, the last ones."""


class ExplainError(ExperimentError):
    """A key that cannot be, or a log that cannot be read."""


def explain_trace(console: Console, trace: Trace, key: str, blocks: int, cost: CostModel) -> None:
    """Replay a trace and tell the story of a block; raises ExplainError."""
    if not key.isdigit():
        raise ExplainError(f"EXPLAIN must be a block's id in the trace, a whole number, not {key!r}")
    policy = make_reuse(blocks, trace, cost)
    _tell(console, policy, _events(trace, policy), int(key))


def explain_log(console: Console, log: Path, key: str, blocks: int, cost: CostModel) -> None:
    """The same of a live pool's event log; raises ExplainError."""
    try:
        wanted = bytes.fromhex(key)
        with log.open() as lines:
            _tell(console, Reuse(blocks, cost), read_events(lines, str(log)), wanted)
    except OSError as error:
        raise ExplainError(f"{log}: {error.strerror}") from None
    except EventLogError as error:
        raise ExplainError(str(error)) from None
    except ValueError:
        raise ExplainError(f"EXPLAIN must be a key in hexadecimal, not {key!r}") from None


def _events(trace: Trace, policy: Reuse) -> Iterator[Event]:
    for request in trace.requests:
        chain, now_s = request.blocks, request.arrival_s
        for depth, block in enumerate(chain):
            parent = chain[depth - 1] if depth else None
            if block in policy:
                yield Hits(block, now_s)
            else:
                yield Miss(block, now_s, depth, len(chain), parent, 1, home_number(block, STORES))


def _tell(console: Console, policy: Reuse, events: Iterator[Event], key: bytes | int) -> None:
    story: list[str] = []
    for event in events:
        decisions = policy.handle(event)
        if isinstance(event, HomeLoad):
            continue
        turns = [type(d).__name__ for d in decisions if d.key == key]
        if event.key == key:
            what = "asked for: hit" if isinstance(event, Hits) else f"{type(event).__name__.lower()}"
            admitted = any(isinstance(d, Admit) and d.key == key for d in decisions)
            story.append(f"{event.now_s:10.1f} s  {what}{', admitted' if admitted else ''}")
        elif turns:
            story.append(f"{event.now_s:10.1f} s  {'evicted' if turns[-1] == 'Evict' else 'admitted'}")
    for line in story[-SHOWN:]:
        console.print(line, highlight=False)
    for sentence in in_words(policy.explain(key)):
        console.print(sentence, highlight=False, soft_wrap=True)
