"""Lists of digests are bounded, whatever a controller asks for and never acknowledges."""

from __future__ import annotations

import pytest

from v1model import ir
from v1model.binding import digests
from v1model.binding.digests import Collector
from v1model.dataplane import DigestConfig
from v1model.protos.p4.v1 import p4runtime_pb2

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


def test_long_samples_that_are_never_acknowledged_are_remembered_to_a_bound_in_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(digests, "MAX_UNACKNOWLEDGED_BYTES", 100 << 10)
    digest = ir.Digest("learn", ir.Struct("wide_t", (("x", ir.Bits(8192)),)))
    collector = Collector(digest, [8192], DigestConfig(0, 1, 1 << 60))
    lists = [collector.add(number.to_bytes(1024, "big"), number) for number in range(250)]
    assert 90 < sum(each is not None for each in lists) <= 100
    assert 90 < len(collector.remembered) == len(collector.unacknowledged) <= 100


@pytest.mark.parametrize("fields", [8, 60])
def test_a_list_fits_into_the_message_that_a_client_takes(fields: int) -> None:
    """A list of 65,536 samples of 60 fields had 130 MB; gRPC's clients take 4 MiB and end their stream."""
    digest = ir.Digest("learn", ir.Struct("wide_t", tuple((f"x{n}", ir.Bits(256)) for n in range(fields))))
    collector = Collector(digest, [256] * fields, DigestConfig(0, 65536, 0))
    sample = b"\xff" * 32 * fields
    full = next(made for number in range(65536) if (made := collector.add(sample, number)))
    message = p4runtime_pb2.DigestList()
    for values in full.data:
        members = message.data.add().struct.members
        for value in values:
            members.add().bitstring = value.to_bytes(32, "big")
    assert digests.MAX_LIST_BYTES / 2 < message.ByteSize() < digests.MAX_LIST_BYTES < 4 << 20


def test_a_sample_that_is_longer_than_a_list_may_be_is_sent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MAX_LIST_BYTES", 8)
    collector = Collector(DIGEST, [32], DigestConfig(0, 100, 0))
    lists = [collector.add(number.to_bytes(4, "big"), number) for number in range(3)]
    assert [len(each.data) for each in lists if each] == [1, 1, 1]
