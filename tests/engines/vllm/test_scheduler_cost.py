"""What a step costs the scheduler depends on what it schedules and completes, not on the prompts' length."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest

from engines.vllm.jobs import Jobs, Report
from engines.vllm.scheduler import SchedulerSide
from tests.engines.vllm.engine_model import ModelKeys
from tests.engines.vllm.pool_in_hand import SPACE, PoolInHand

BLOCK_TOKENS = 16


class Table(list[Any]):
    """A request's blocks, which counts what is looked at."""

    looked_at = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.looked_at += len(found) if isinstance(key, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.looked_at += len(self)
        return super().__iter__()


class Decoding:
    """Requests that have been prefilled, and decode one token a step."""

    def __init__(self, requests: int, tokens: int, ranks: int = 1) -> None:
        space = replace(SPACE, block_tokens=BLOCK_TOKENS, tensor_parallel=ranks)
        self.pool = PoolInHand(space)
        self.tables: dict[str, Table] = {}
        self.requests: list[Any] = []
        keys = cast(Any, ModelKeys(space, self.pool))
        self.side = SchedulerSide(cast(Any, self.pool), keys, cast(Any, self), background=False)
        for number in range(requests):
            request: Any = SimpleNamespace(
                request_id=f"r{number}", all_token_ids=[number, *range(1, tokens)], num_computed_tokens=0,
                num_tokens=tokens, lora_request=None, skip_reading_prefix_cache=False,
            )  # fmt: skip
            blocks = tokens // BLOCK_TOKENS + 8
            self.tables[request.request_id] = Table(
                SimpleNamespace(block_id=block) for block in range(blocks)
            )
            self.requests.append(request)
            self.side.added(request)
            assert self.side.matched_tokens(request, 0) == (0, False)
            table = SimpleNamespace(get_block_ids=lambda: ([],))
            self.side.allocated(request, cast(Any, table), 0)
        self.step(tokens)

    def blocks(self, request_id: str) -> Table:
        return self.tables[request_id]

    def step(self, tokens: int = 1) -> Jobs:
        """Schedule so many tokens of each request, and have the step done."""
        counts = {request.request_id: tokens for request in self.requests}
        output: Any = SimpleNamespace(
            num_scheduled_tokens=counts, total_num_scheduled_tokens=sum(counts.values()),
            has_sync_kv_loads=False,
            scheduled_cached_reqs=SimpleNamespace(req_ids=[], resumed_req_ids=set(), new_block_ids=[]),
        )  # fmt: skip
        jobs = self.side.jobs(output)
        for request in self.requests:
            request.num_computed_tokens += tokens
            request.all_token_ids.append(7)
            request.num_tokens += 1
        self.side.reported(Report(jobs.step), (), failed_load=False)
        return jobs

    def looked_at(self) -> int:
        return sum(table.looked_at for table in self.tables.values())


def calls_of(work: Callable[[], object]) -> int:
    """Calls of Python and C functions; none of what the garbage collector would finalise meanwhile."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize("ranks", [1, 8])
def test_a_step_costs_as_much_at_131072_tokens_as_at_1024(ranks: int) -> None:
    costs = []
    for tokens in (1024, 131_072):
        engine = Decoding(2, tokens, ranks)
        engine.step(0)
        before = engine.looked_at()
        costs.append([(calls_of(engine.step), engine.looked_at() - before) for _ in range(BLOCK_TOKENS)])
    assert costs[0] == costs[1]


def test_a_step_that_completes_no_block_costs_a_few_calls_a_request() -> None:
    costs = []
    for requests in (8, 64):
        engine = Decoding(requests, 64)
        engine.step(0)
        costs.append(calls_of(lambda engine=engine: engine.step()))  # type: ignore[misc]
    assert costs[1] - costs[0] < 12 * (64 - 8)


def test_a_block_more_is_hashed_once_for_all_ranks_and_sent_alone() -> None:
    sizes = set()
    for tokens, ranks in ((1024, 1), (131_072, 1), (131_072, 8)):
        engine = Decoding(1, tokens, ranks)
        hashed = 0
        key = engine.pool.seal.key

        def counting(*parts: bytes, key: Any = key) -> Any:
            nonlocal hashed
            hashed += 1
            return key(*parts)

        engine.pool.seal.key = counting  # type: ignore[method-assign]
        stores = [jobs for jobs in (engine.step() for _ in range(BLOCK_TOKENS)) if jobs.stores]
        assert hashed == len(stores) == 1
        sizes.add(len(pickle.dumps(stores[0].stores[0])))
    assert max(sizes) - min(sizes) < 16


def test_no_step_waits_for_look_ups_while_there_is_something_to_compute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Decoding(1, 1024)
    engine.pool.answers_at_once = False
    monkeypatch.setattr("engines.vllm.lookups.wait", lambda *_, **__: pytest.fail("the scheduler waits"))
    late: Any = SimpleNamespace(
        request_id="late", all_token_ids=[5] * 99, num_computed_tokens=0, num_tokens=99, lora_request=None,
        skip_reading_prefix_cache=False,
    )  # fmt: skip
    engine.side.added(late)
    assert engine.side.matched_tokens(late, 0) == (None, False)
    engine.step()
