"""`make policies EXPLAIN=key`: print a block's history (`block_history.py`) and why it is in the pool or not.

The policy is `reuse`. Its events come from the replay of a trace, or from the event log of a live
controller (`EVENTS=<switch>.jsonl`). EXPLAIN is the block's id in the trace, or its key in hexadecimal, as
in the controller's results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from commands.errors import ExperimentError
from controller.policies import Key
from controller.policies.eventlog import EventLogError, Head, read_events, read_head
from controller.policies.explain import in_words
from controller.policies.reuse.reuse import Reuse
from experiments.policies.block_history import LEGEND, BlockHistory
from experiments.policies.pools import PolicyPool, make_reuse
from experiments.policies.replay import replay
from experiments.policies.stores import DEFAULT_LINKS, Links
from workload.cost import CostError, CostModel, make_cost_model
from workload.trace import Trace


class ExplainError(ExperimentError):
    """A key that is not valid, or a log that cannot be read."""


def explain_trace(
    console: Console, trace: Trace, key: str, blocks: int, cost: CostModel, links: Links = DEFAULT_LINKS
) -> None:
    """Replay a trace and print the history of the block with the id `key`; raises ExplainError."""
    if not (key.isascii() and key.isdigit()):
        raise ExplainError(f"EXPLAIN must be a block's id in the trace, a whole number, not {key!r}")
    console.print(f"[bold]{trace.name}, {blocks:,} blocks[/]", highlight=False)
    block_history = BlockHistory(make_reuse(blocks, trace, cost), int(key))
    replay(trace, block_history.name, blocks, PolicyPool(block_history), cost, links)
    _tell(console, block_history)


def explain_log(console: Console, log: Path, key: str, sizes: Sequence[int], cost: CostModel) -> None:
    """Print the history of a block from a live pool's event log; raises ExplainError.

    `sizes` and `cost` are used only if the log does not say what its pool was.
    """
    try:
        wanted = bytes.fromhex(key)
    except ValueError:
        raise ExplainError(f"EXPLAIN must be a key in hexadecimal, not {key!r}") from None
    try:
        with log.open() as lines:
            head = read_head(lines, str(log))
        if head is not None:
            _tell_log(console, log, _live_policy(head), wanted, f"{_pool(head)}, as its first line says")
        else:
            for blocks in sizes:
                what = f"{blocks:,} blocks; it does not say what its pool was"
                _tell_log(console, log, Reuse(blocks, cost), wanted, what)
    except OSError as error:
        raise ExplainError(f"{log}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ExplainError(f"{log}: not an event log, as it is no text") from None
    except EventLogError as error:
        raise ExplainError(str(error)) from None
    except CostError as error:
        raise ExplainError(f"{log}:1: {error}") from None


def _live_policy(head: Head) -> Reuse:
    cost = replace(make_cost_model(head.model, head.gpu, head.block_tokens), stored_share=head.stored_share)
    return Reuse(head.capacity_blocks, cost, link_bit_s=head.link_bit_s, capacity_slots=head.capacity_slots)


def _pool(head: Head) -> str:
    other = "" if head.policy == Reuse.name else f"{Reuse.name} in place of {head.policy}, "
    size = f"{head.capacity_blocks:,} blocks, {head.capacity_slots:,} slots"
    return f"{other}{size}, {head.link_bit_s / 1e9:g} Gbit/s"


def _tell_log(console: Console, log: Path, policy: Reuse, key: Key, pool: str) -> None:
    console.print(f"[bold]{log}[/], {pool}", highlight=False, soft_wrap=True)
    block_history = BlockHistory(policy, key)
    with log.open() as lines:
        for event in read_events(lines, str(log)):
            block_history.handle(event)
    _tell(console, block_history)


def _tell(console: Console, block_history: BlockHistory) -> None:
    if block_history.turns:
        console.print(LEGEND, highlight=False, soft_wrap=True)
    if block_history.turns > len(block_history.last):
        console.print(f"… {block_history.turns - len(block_history.last):,} turns before", highlight=False)
    for line in block_history.last:
        console.print(line, highlight=False, soft_wrap=True)
    for sentence in in_words(block_history.account()):
        console.print(sentence, highlight=False, soft_wrap=True)
