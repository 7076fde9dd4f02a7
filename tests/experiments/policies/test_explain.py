"""The history of one block is that of the replay, or of the live pool, and says why at each turn."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from commands.errors import OptionError
from controller.policies import Event, Found, Hits, Key, Lost, Miss
from controller.policies.eventlog import Head, to_line
from controller.policies.explain import Tenancy, in_words
from controller.policies.reuse.reuse import Reuse
from experiments.policies.block_history import BlockHistory
from experiments.policies.explain import ExplainError, explain_log, explain_trace
from experiments.policies.options import parse_options
from experiments.policies.pools import PolicyPool, make_reuse
from experiments.policies.replay import replay
from workload.cost import DEFAULT_GPU, DEFAULT_LINK_BIT_S, DEFAULT_MODEL, CostModel
from workload.generate import generate
from workload.trace import Trace

COST = CostModel()
BLOCKS = 60
KEY = bytes(range(18))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return generate("chat", 1, 300)


def told(trace: Trace, key: str) -> str:
    console = Console(width=200, record=True, quiet=False)
    explain_trace(console, trace, key, BLOCKS, COST)
    return console.export_text()


def told_of_log(log: Path, key: str, sizes: tuple[int, ...] = ()) -> str:
    console = Console(width=200, record=True)
    explain_log(console, log, key, sizes, COST)
    return console.export_text()


def write_log(path: Path, *events: Event | str) -> Path:
    path.write_text("".join((e if isinstance(e, str) else to_line(e)) + "\n" for e in events))
    return path


def follow(block_history: BlockHistory, *events: Event) -> str:
    for event in events:
        block_history.handle(event)
    return "\n".join(block_history.last)


def test_what_is_told_at_the_end_is_what_the_replay_ends_with(trace: Trace) -> None:
    policy = make_reuse(BLOCKS, trace, COST)
    replay(trace, "reuse", BLOCKS, PolicyPool(policy), COST)
    account = policy.explain(0)
    assert account.fetch_s > COST.fetch_s(COST.block_bytes, DEFAULT_LINK_BIT_S) * 1.01  # it heard of waits
    assert told(trace, "0").endswith("\n".join(in_words(account)) + "\n")


def test_a_block_is_explained(trace: Trace) -> None:
    text = told(trace, "0")
    assert "0 is in the pool, because it is wanted" in text
    assert re.search(r"asked for, admitted \([\d.]+ ms; wanted\): there was room", text)
    assert re.search(r"asked for: \d+ hits from [\d.]+ s on", text)
    assert re.search(r"It saves [\d.]+ ms per slot and 1,000 accesses", text)
    assert "not in the pool: never heard of" in told(trace, "99999999")


def test_who_displaces_and_who_is_displaced_tell_the_same(trace: Trace) -> None:
    found = re.search(r"([\d.]+) s  evicted (\(.*?\)) for (\d+) (\(.*?\))", told(trace, "40"))
    assert found is not None
    at_s, lost, newcomer, gained = found.groups()
    other = told(trace, newcomer)
    assert f"{at_s} s  asked for, admitted {gained} in place of 40 {lost}" in other


def test_a_refusal_says_what_it_would_have_had_to_displace(trace: Trace) -> None:
    assert re.search(
        r"asked for, refused \([\d.]+ ms; not wanted\); the block before it is not wanted; "
        r"next to leave is \d+ \([\d.]+ ms; wanted\)",
        told(trace, "200"),
    )


def two_tenants(block_history: BlockHistory) -> None:
    """One is content with twenty blocks of sixty; the other goes round fifty."""

    def ask(key: Key, now_s: float, tenant: int) -> None:
        block_history.handle(Hits(key, now_s) if key in block_history else Miss(key, now_s, tenant=tenant))

    for turn in range(2000):
        ask(turn % 20, turn, 0)
        for one in range(9):
            ask(100 + (9 * turn + one) % 50, turn, 1)


def test_a_block_that_its_tenants_share_keeps_out_is_told_so() -> None:
    plain = BlockHistory(Reuse(BLOCKS), 0)
    two_tenants(plain)
    out = next(key for key in range(100, 150) if key not in plain)
    block_history = BlockHistory(Reuse(BLOCKS), out)
    two_tenants(block_history)
    account = block_history.account()
    assert account.tenancy is not None
    assert "Its tenant 1 holds 40 blocks; its share is 30." in in_words(account)
    assert any("its tenant 1 holds 40 blocks, its share is 30" in turn for turn in block_history.last)
    assert "because it is not wanted" in in_words(replace(account, wanted=False))[0]
    barred = "in place of another block of tenant 1, which holds its share"
    assert barred in in_words(replace(account, wanted=True))[0]
    due = Tenancy(1, 29, 30, "blocks")
    assert barred not in in_words(replace(account, wanted=True, tenancy=due))[0]


def test_what_is_lost_and_found_is_told() -> None:
    block_history = BlockHistory(Reuse(20), 7)
    fillers = [Miss(key, 1.0) for key in range(100, 120)]
    text = follow(block_history, Miss(7, 0.0), Lost(7, 0.5), *fillers, Found(7, 2.0))
    assert "lost: the pool does not hold it after all" in text
    assert re.search(r"found: the pool holds it after all in place of 1\d\d \(", text)
    evicted = BlockHistory(Reuse(20), 100)
    assert "which the pool holds after all" in follow(evicted, *fillers, Found(7, 2.0))


def test_hits_that_follow_each_other_are_one_turn() -> None:
    block_history = BlockHistory(Reuse(20), 7)
    text = follow(
        block_history, Miss(7, 0.0), Hits(7, 1.0), Hits(7, 2.0, 3), Lost(7, 3.0), Miss(7, 4.0), Hits(7, 5.0)
    )
    assert "4 hits from 1.0 s on" in text
    assert text.endswith("5.0 s  asked for: a hit")
    assert block_history.turns == 5


def test_a_log_that_says_what_its_pool_was_needs_no_size(tmp_path: Path) -> None:
    head = Head("reuse", 25, 50, 2e10, DEFAULT_MODEL, DEFAULT_GPU, 512, 1.0)
    log = write_log(tmp_path / "s1.jsonl", head.to_line(), Miss(KEY, 1.0, 0, 1), Hits(KEY, 2.0))
    text = told_of_log(log, KEY.hex())
    assert "25 blocks, 50 slots, 20 Gbit/s, as its first line says" in text
    fetch_ms = 1e3 * COST.fetch_s(COST.block_bytes, 2e10)
    assert f"takes {fetch_ms:.1f} ms on average" in text
    filled = [Miss(bytes([n] * 18), 3.0, 0, 1, fragments=2) for n in range(25)]
    write_log(log, head.to_line(), Miss(KEY, 1.0, 0, 1, fragments=2), *filled)
    assert "evicted" in told_of_log(log, KEY.hex()) or "next to leave" in told_of_log(log, KEY.hex())


def test_a_log_that_does_not_say_it_is_told_for_each_size(tmp_path: Path) -> None:
    log = write_log(tmp_path / "s1.jsonl", Miss(KEY, 1.0, 0, 1), Hits(KEY, 2.0))
    text = told_of_log(log, KEY.hex(), (60, 80))
    assert "60 blocks; it does not say what its pool was" in text
    assert "80 blocks" in text
    assert "in the pool, because" in text


@pytest.mark.parametrize("key", ["x", "²", "1.5", "-1"])
def test_an_id_that_cannot_be_is_refused(trace: Trace, key: str) -> None:
    with pytest.raises(ExplainError, match="whole number"):
        told(trace, key)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"event": "Hits", "key": 1, "now_s": 0, "times": 0}', "not an event: times cannot be 0"),
        ('{"event": "Miss", "key": 1, "now_s": 0, "recompute_s": NaN}', "not an event: recompute_s cannot"),
    ],
)
def test_a_line_that_cannot_be_is_named(tmp_path: Path, line: str, reason: str) -> None:
    log = write_log(tmp_path / "s1.jsonl", Miss(KEY, 1.0), line)
    with pytest.raises(ExplainError, match=rf"s1\.jsonl:2: {reason}"):
        told_of_log(log, KEY.hex(), (60,))


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    log = tmp_path / "s1.jsonl"
    with pytest.raises(ExplainError, match="No such file"):
        told_of_log(log, KEY.hex(), (60,))
    log.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ExplainError, match=r"s1\.jsonl: .* no text"):
        told_of_log(log, KEY.hex(), (60,))
    write_log(log, Head("reuse", 25, 50, 2e10, "x", DEFAULT_GPU, 512, 1.0).to_line())
    with pytest.raises(ExplainError, match=r"s1\.jsonl:1: "):
        told_of_log(log, KEY.hex())
    with pytest.raises(ExplainError, match="hexadecimal"):
        told_of_log(log, "zz")


def test_a_log_needs_a_key(tmp_path: Path) -> None:
    log = tmp_path / "s1.jsonl"
    log.touch()
    with pytest.raises(OptionError, match="EXPLAIN"):
        parse_options(["--events", str(log)])
