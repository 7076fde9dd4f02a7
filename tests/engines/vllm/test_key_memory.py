"""What is remembered of keys."""

from __future__ import annotations

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
