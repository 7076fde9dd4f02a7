"""Lists of digests are bounded, whatever a controller asks for and never acknowledges."""

from __future__ import annotations

import pytest

from v1model import ir
from v1model.binding import digests
from v1model.binding.digests import Collector
from v1model.dataplane import DigestConfig

DIGEST = ir.Digest("learn", ir.Struct("learn_t", (("x", ir.Bits(32)),)))


def test_a_list_without_a_bound_is_sent_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MAX_LIST_SIZE", 100)
    collector = Collector(DIGEST, [32], DigestConfig(0, (1 << 31) - 1, 0))
    lists = [collector.add(number.to_bytes(4, "big"), number) for number in range(250)]
    assert [len(each.data) for each in lists if each] == [100, 100]


def test_what_is_never_acknowledged_is_remembered_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MAX_UNACKNOWLEDGED", 100)
    collector = Collector(DIGEST, [32], DigestConfig(0, 1, 1 << 60))
    lists = [collector.add(number.to_bytes(4, "big"), number) for number in range(250)]
    assert sum(each is not None for each in lists) == 100
    assert len(collector.remembered) == len(collector.unacknowledged) == 100
