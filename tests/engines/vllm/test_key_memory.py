"""What is remembered of keys."""

from __future__ import annotations

import time

from engines.vllm.key_memory import KeyMemory

KEYS = [bytes([number]) for number in range(8)]


def test_runs_of_keys_that_are_not_remembered() -> None:
    memory = KeyMemory(8)
    memory.add([KEYS[0], KEYS[1], KEYS[4]])
    assert list(memory.missing(KEYS, 0, 8)) == [(2, 4), (5, 8)]
    assert list(memory.missing(KEYS, 1, 2)) == []
    memory.discard([KEYS[1]])
    assert list(memory.missing(KEYS, 0, 2)) == [(1, 2)]


def test_the_oldest_are_forgotten() -> None:
    memory = KeyMemory(3)
    memory.add(KEYS[:3])
    memory.add([KEYS[0], KEYS[3]])
    assert [key in memory for key in KEYS[:4]] == [True, False, True, True]
    assert len(memory) == 3


def test_forgetting_costs_as_much_in_a_large_memory_as_in_a_small_one() -> None:
    """It is full when 64 requests of 131,072 tokens run, and each completed block has one forgotten."""

    def cost_s(limit: int) -> float:
        memory = KeyMemory(limit)
        memory.add(number.to_bytes(8, "big") for number in range(limit))
        more = [[number.to_bytes(8, "big")] for number in range(limit, limit + (1 << 15))]
        began = time.thread_time()
        for one in more:
            memory.add(one)
        return time.thread_time() - began

    assert min(cost_s(1 << 17) for _ in range(3)) < 5 * min(cost_s(1 << 10) for _ in range(3))
