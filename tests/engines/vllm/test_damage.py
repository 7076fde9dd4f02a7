"""Blocks with wrong KV, followed from step to step. Blocks of 4 tokens."""

from __future__ import annotations

from engines.vllm.damage import Damage, Write


def test_what_is_behind_a_failed_block_is_wrong_in_every_request_that_has_it() -> None:
    damage = Damage(4)
    damage.spread({2}, [[1, 2, 3], [1, 2, 7, 8], [5, 6]])
    assert damage.block_ids == {2, 3, 7, 8}
    assert damage.sound_blocks([1, 2, 3]) == 1
    assert damage.sound_blocks([5, 6]) == 2


def test_what_is_computed_on_right_blocks_is_right_again() -> None:
    damage = Damage(4)
    damage.spread({2}, [[1, 2, 3]])
    damage.step([Write([1, 2, 3], 4, 8)])
    assert damage.block_ids == {3}


def test_what_is_computed_on_wrong_blocks_is_wrong() -> None:
    damage = Damage(4)
    damage.spread({2}, [[1, 2]])
    damage.step([Write([1, 2, 9], 8, 11)])
    assert damage.block_ids == {2, 9}


def test_a_block_that_is_wrong_in_part_stays_wrong() -> None:
    damage = Damage(4)
    damage.spread({2}, [[1, 2]])
    damage.step([Write([1, 2], 6, 8)])
    assert damage.block_ids == {2}


def test_a_block_of_which_one_request_computed_a_part_is_still_wrong_for_another_one() -> None:
    damage = Damage(4)
    damage.spread({1}, [[1, 2]])
    assert damage.step([Write([1, 2], 0, 2), Write([1, 5], 4, 8)]) == {1}
    assert damage.block_ids == {1, 2, 5}
    assert not damage.step([Write([1, 2], 2, 6), Write([1, 5], 4, 8)])
    assert damage.block_ids == {2}


def test_requests_of_one_step_build_on_one_another_in_any_order() -> None:
    damage = Damage(4)
    damage.spread({1}, [[1, 2]])
    damage.step([Write([1, 2, 5], 8, 12), Write([1, 2], 0, 8)])  # the second writes what the first reads
    assert not damage
    damage.spread({1}, [[1, 2]])
    damage.step([Write([1, 2, 5], 8, 12), Write([1, 2], 0, 4)])  # it has not got that far
    assert damage.block_ids == {2, 5}


def test_a_block_that_nobody_holds_or_that_is_given_anew_is_forgotten() -> None:
    damage = Damage(4)
    damage.spread({1, 2, 3}, [])
    damage.keep({1, 2})
    damage.forget([2])
    assert damage.block_ids == {1}
