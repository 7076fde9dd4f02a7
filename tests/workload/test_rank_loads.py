"""What ranks that need the same KV load, and how long that takes at least."""

import pytest

from workload.rank_loads import WAYS, Ranks

SIZE = Ranks().kv_bytes(128_000)


def seconds(way: str, ranks: Ranks) -> float:
    load = WAYS[way](ranks, SIZE)
    assert load is not None
    return load.seconds


def test_bytes_are_the_models() -> None:
    assert Ranks().kv_bytes(1) == 576 * 61 * 2


@pytest.mark.parametrize(
    ("way", "copies"),
    [
        ("each rank loads all", 16),
        ("one loads, NVLink broadcast", 2),
        ("each loads a part, NVLink all-gather", 2),
        ("switch merges and multicasts", 1),
        ("switch merges parts, NVLink all-gather", 1),
    ],
)
def test_homes_send_so_many_copies_to_two_servers(way: str, copies: int) -> None:
    load = WAYS[way](Ranks(ranks=16, servers=2), SIZE)
    assert load is not None
    assert load.sent_bytes == pytest.approx(copies * SIZE)


def test_in_one_server_with_nvlink_no_switch_is_faster_than_parts() -> None:
    for home_gbit_s in (100.0, 400.0, 1600.0):
        ranks = Ranks(home_gbit_s=home_gbit_s)
        parts = seconds("each loads a part, NVLink all-gather", ranks)
        assert parts <= seconds("switch merges and multicasts", ranks)
        assert parts == seconds("switch merges parts, NVLink all-gather", ranks)


def test_without_nvlink_the_switch_saves_what_homes_cannot_send() -> None:
    ranks = Ranks(nvlink_bytes_s=0.0)
    assert WAYS["one loads, NVLink broadcast"](ranks, SIZE) is None
    assert seconds("each rank loads all", ranks) == 4 * seconds("switch merges and multicasts", ranks)


def test_behind_one_link_the_switch_saves_the_ranks_nothing() -> None:
    ranks = Ranks(own_links=False)
    assert seconds("each rank loads all", ranks) == seconds("switch merges and multicasts", ranks)


def test_across_servers_merging_divides_what_homes_send() -> None:
    ranks = Ranks(ranks=64, servers=8)
    parts, merged = "each loads a part, NVLink all-gather", "switch merges parts, NVLink all-gather"
    assert seconds(parts, ranks) == pytest.approx(8 * seconds(merged, ranks))
