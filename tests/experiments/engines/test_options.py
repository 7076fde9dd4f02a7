"""Options of make engines, and what follows from them."""

from __future__ import annotations

import pytest

from commands.errors import OptionError
from experiments.engines.options import MODES, parse_options
from experiments.engines.stage import make_fabric, object_bytes, object_fragments, pool_size


def test_an_engine_has_to_hold_one_request() -> None:
    with pytest.raises(OptionError, match="OWN_BLOCKS must be at least 34"):
        parse_options(["--own-blocks", "33"])
    assert parse_options(["--own-blocks", "34"]).max_tokens == 34 * 32


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--modes", "pool,redis"], "there is no 'redis': choose one of recompute"),
        (["--loading", "eager"], "choose one of layerwise, background"),
        (["--objects", "13"], "must be from 1 to 12"),
    ],
)
def test_what_can_not_be_is_refused(wrong: list[str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        parse_options(wrong)


def test_objects_are_layers_of_a_block_and_the_pool_has_room_for_as_many_as_it_says() -> None:
    whole, halves = parse_options(["--objects", "1"]), parse_options(["--objects", "2"])
    assert object_bytes(whole) == 12 * 2 * 64 * 4 * 32
    assert object_bytes(halves) == object_bytes(whole) // 2
    assert object_fragments(halves) == 192
    assert pool_size(halves).slots == 512 * 192
    assert parse_options([]).modes == MODES


def test_links_are_not_scaled() -> None:
    fabric = make_fabric(parse_options(["--link-gbit", "2.5", "--stores", "2"]))
    assert len(fabric.nodes) == 2
    assert len(fabric.stores) == 2
    assert fabric.link_rate_bit_s("node1") == 2.5e9
