"""Homes that forget: what requests wait for, what links carry, and what is lost with a block before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from controller.policies import Admit, Decision, Evict, Found, Hits, Key, Lost, Miss, Policy
from controller.policies.reuse import Reuse
from experiments.policies.__main__ import main
from experiments.policies.reclaim import MODES, Homes, Spent, spend
from experiments.policies.reclaim_study import DEEP_BLOCKS, HOMES_PER_POOL, MEDIA, deep
from experiments.policies.stores import STORES
from workload.cost import CostModel
from workload.generate import generate, to_line
from workload.keys import home_number
from workload.trace import MOONCAKE, Request, Trace

COST = CostModel()
LINK_BIT_S = 200e9
TRANSFER_S = COST.fetch_s(COST.block_bytes, LINK_BIT_S)


class Scripted(Policy):
    """Admits what it is told to; each admission evicts what was admitted before."""

    name = "scripted"

    def __init__(self, wanted: set[int]) -> None:
        super().__init__(1)
        self._wanted, self._held = wanted, list[Key]()

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def miss(self, event: Miss) -> Sequence[Decision]:
        if event.key not in self._wanted:
            return ()
        evicted, self._held = self._held, [event.key]
        return (*(Evict(key, 1.0) for key in evicted), Admit(event.key))

    def hits(self, event: Hits) -> None:
        pass

    def lost(self, event: Lost) -> None:
        pass

    def found(self, event: Found) -> Sequence[Decision]:
        return ()


def trace_of(*chains: Sequence[int]) -> Trace:
    requests = [Request(10.0 * n, 512 * len(chain), 1, tuple(chain)) for n, chain in enumerate(chains)]
    return Trace("small", MOONCAKE, tuple(requests))


def of_home(home: int, count: int) -> list[int]:
    return [block for block in range(1000) if home_number(block, STORES) == home][:count]


def test_requests_wait_for_computing_and_fetching_but_not_for_sending() -> None:
    trace = generate("chat", 1, 150)

    def spent(home_blocks: int, mode: str) -> Spent:
        return spend(trace, Reuse(60), Homes(home_blocks, LINK_BIT_S), mode, COST)

    keep, forget = spent(10**6, "drop"), spent(5, "drop")
    assert forget.compute_s > keep.compute_s
    assert (forget.sent, forget.send_s) == (0, 0.0)
    assert spent(10**6, "reclaim").sent == 0
    sending = spent(5, "reclaim")
    assert sending.sent > 0
    assert sending.send_s == pytest.approx(sending.sent * TRANSFER_S)
    assert sending.waited_s == sending.compute_s + sending.fetch_s <= forget.waited_s


def test_what_was_sent_home_is_fetched_instead_of_computed() -> None:
    first, second, third = of_home(0, 3)
    trace = trace_of([first], [second], [third], [first])
    # The home keeps one block; the pool has the first until the third comes.
    dropped, sent = (
        spend(trace, Scripted({first, third}), Homes(1, LINK_BIT_S), mode, COST) for mode in ("drop", "value")
    )
    assert (dropped.sent, dropped.stranded, dropped.fetch_s) == (0, 0, 0.0)
    assert dropped.compute_s == pytest.approx(4 * COST.block_prefill_s(0))
    # The first for the third, and the third when the first is back.
    assert (sent.sent, sent.stranded) == (2, 0)
    assert sent.compute_s == pytest.approx(3 * COST.block_prefill_s(0))
    assert (sent.fetch_s, sent.send_s) == pytest.approx((TRANSFER_S, 2 * TRANSFER_S))


def test_what_a_slow_ssd_keeps_takes_its_time_to_read() -> None:
    (block,) = of_home(0, 1)
    trace = trace_of([block], [block])
    slow = spend(trace, Scripted(set()), Homes(1, LINK_BIT_S, 3e9), "drop", COST)
    assert slow.fetch_s == pytest.approx(TRANSFER_S + COST.block_bytes / 3e9)


def test_what_hangs_behind_a_lost_block_is_computed_and_counted() -> None:
    first, second, *others = of_home(0, 8)
    # The pool holds the second of the chain, and nobody the first any more.
    trace = trace_of([first, second], others, [first, second])
    spent = spend(trace, Scripted({second}), Homes(1, LINK_BIT_S), "drop", COST)
    assert spent.stranded == 1
    assert spent.stranded_s == pytest.approx(COST.block_prefill_s(1))
    again = spend(trace_of([first, second], [first, second]), Scripted(set()), Homes(9, 2e11), "drop", COST)
    assert (again.stranded, again.stranded_s) == (0, 0.0)


def test_long_requests_are_looked_at_by_themselves() -> None:
    trace = generate("chat", 1, 100)
    longs = deep(trace)
    assert longs is not None
    assert [r for r in trace.requests if len(r.blocks) >= DEEP_BLOCKS] == list(longs.requests)
    assert deep(trace_of(*[[n] for n in range(50)])) is None


def rows_of(folder: Path) -> Any:
    return json.loads((folder / "reclaim.json").read_text())["rows"]


def test_the_study_has_intervals_of_several_seeds_for_each_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "220")
    small = ("--requests", "60", "--blocks", "30", "--jobs", "1", "--results", str(tmp_path))
    assert main(["--reclaim", "yes", "--shapes", "rag,chat", "--seeds", "2", *small]) == 0
    rows = rows_of(tmp_path)
    groups = ["rag", "chat", f"chat, from {DEEP_BLOCKS} blocks on"]
    assert list(dict.fromkeys(row["trace"] for row in rows)) == groups
    assert len(rows) == len(groups) * len(MEDIA) * len(HOMES_PER_POOL) * len(MODES)
    assert {row["homes_blocks"] for row in rows} == {30 * homes for homes in HOMES_PER_POOL}
    traces = [generate("rag", seed, 60) for seed in (1, 2)]
    row = next(row for row in rows if row["mode"] == "reclaim" and row["ssd_gbyte_s"])
    homes = Homes(30 // STORES, LINK_BIT_S, 1e9 * row["ssd_gbyte_s"])
    found = {
        mode: [spend(trace, Reuse(30, COST), homes, mode, COST) for trace in traces]
        for mode in ("drop", "reclaim")
    }
    saved_s = [a.waited_s - b.waited_s for a, b in zip(found["drop"], found["reclaim"], strict=True)]
    assert row["saved_s"]["mean"] == pytest.approx(sum(saved_s) / 2)
    assert row["link_s"]["low"] < row["link_s"]["mean"] < row["link_s"]["high"]
    assert row["link_s"]["mean"] == pytest.approx(sum(spent.send_s for spent in found["reclaim"]) / 2)
    said = capsys.readouterr().out
    assert "reclaim: what requests wait for" in said
    assert "nobody waits for that" in said


def test_the_study_takes_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    requests = generate("rag", 1, 40).requests
    path.write_text("".join(to_line(request) + "\n" for request in requests))
    options = ("--trace", str(path), "--blocks", "30", "--jobs", "1", "--results", str(tmp_path))
    assert main(["--reclaim", "yes", *options]) == 0
    row = rows_of(tmp_path)[0]
    assert (row["saved"]["low"], row["saved"]["high"]) == (None, None)
