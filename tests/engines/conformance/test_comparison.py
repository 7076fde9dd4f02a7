"""Replies are compared by tokens, and by log-probabilities up to the first token that differs."""

from __future__ import annotations

from engines.conformance.comparison import difference, is_same, largest_difference


def test_differences_count_up_to_the_first_other_token() -> None:
    right = {"tokens": [1, 2, 3], "logprobs": [-1.0, -2.0, -3.0]}
    reply = {"tokens": [1, 5, 3], "logprobs": [-1.5, -2.1, -9.0]}
    assert difference(reply, right) == (1, 0.5)
    assert largest_difference([right, reply], [right, right]) == 0.5


def test_the_tolerance_separates_other_batches_from_other_kv() -> None:
    right = {"tokens": [1], "logprobs": [-1.0]}
    assert is_same({"tokens": [1], "logprobs": [-1.000004]}, right)
    assert not is_same({"tokens": [1], "logprobs": [-1.001]}, right)
    assert not is_same({"tokens": [2], "logprobs": [-1.0]}, right)
