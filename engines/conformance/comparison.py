"""Compare an engine's replies with those of recomputing."""

from __future__ import annotations

from typing import Any

TOLERANCE = 1e-4
"""Largest difference of a log-probability. Computing the same prompt in other batches moves it by some 1e-6
(float32), KV of other weights by tenths."""

Reply = dict[str, Any]
"""Answer of an engine: `tokens`, and `logprobs` of the tokens that it chose."""


def difference(reply: Reply, reference: Reply) -> tuple[int, float]:
    """Return how many tokens differ, and the largest difference of log-probabilities up to there."""
    largest = 0.0
    pairs = zip(reply["tokens"], reference["tokens"], reply["logprobs"], reference["logprobs"], strict=True)
    changed = 0
    for token, expected, logprob, expected_logprob in pairs:
        if not changed:
            largest = max(largest, abs(logprob - expected_logprob))
        changed += token != expected
    return changed, largest


def largest_difference(replies: list[Reply], references: list[Reply]) -> float:
    """Return the largest difference of log-probabilities between replies and their references."""
    pairs = zip(replies, references, strict=True)
    return max(difference(reply, reference)[1] for reply, reference in pairs)


def is_same(reply: Reply, reference: Reply, tolerance: float = TOLERANCE) -> bool:
    """Return whether a reply has the reference's tokens, and its log-probabilities within the tolerance."""
    changed, largest = difference(reply, reference)
    return not changed and largest <= tolerance
