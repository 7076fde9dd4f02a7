"""Offsets of clocks, and captures whose times are made ours."""

import struct
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from cluster.clocks import estimate, shift_capture


class Wire:
    """A clock that is ahead by `ahead_s`, and round trips whose ways take these seconds."""

    def __init__(self, ahead_s: float, ways: list[tuple[float, float]]) -> None:
        self.now_s, self._ahead_s, self._ways = 100.0, ahead_s, iter(ways)

    def theirs(self) -> float:
        there, back = next(self._ways)
        read_s = self.now_s + there + self._ahead_s
        self.now_s += there + back
        return read_s


def test_the_quickest_answer_counts() -> None:
    wire = Wire(7.0, [(0.3, 0.1), (0.001, 0.001), (0.05, 0.9)])
    offset = estimate(wire.theirs, lambda: wire.now_s, 3)
    assert offset.ahead_s == pytest.approx(7.0)
    assert offset.within_s == pytest.approx(0.001)


@pytest.mark.parametrize("ways", [(0.0, 0.2), (0.2, 0.0), (0.05, 0.15)])
def test_the_error_is_within_what_is_said(ways: tuple[float, float]) -> None:
    wire = Wire(-3.5, [ways])
    offset = estimate(wire.theirs, lambda: wire.now_s, 1)
    assert abs(offset.ahead_s + 3.5) <= offset.within_s + 1e-9


def _capture(path: Path, times_ns: list[int]) -> None:
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    for number, time_ns in enumerate(times_ns):
        seconds, nanoseconds = divmod(time_ns, 10**9)
        data += struct.pack("<IIII", seconds, nanoseconds, number + 1, number + 1) + b"x" * (number + 1)
    path.write_bytes(data)


@pytest.mark.parametrize("by_s", [0.75, -0.75, -12.000000001, 0.0])
def test_times_of_a_capture_are_shifted(tmp_path: Path, by_s: float) -> None:
    path, times_ns = tmp_path / "x.pcap", [1_700_000_000 * 10**9 + 5, 1_700_000_000 * 10**9 + 999_999_999]
    _capture(path, times_ns)
    shift_capture(path, by_s)
    with RawPcapReader(str(path)) as packets:
        found = [(about.sec * 10**9 + about.usec, len(data)) for data, about in packets]
    assert found == [(time_ns + round(by_s * 1e9), number) for number, time_ns in enumerate(times_ns, 1)]


def test_what_is_no_such_capture_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    for content in (b"", b"short", b"\xd4\xc3\xb2\xa1" + bytes(40)):
        path.write_bytes(content)
        shift_capture(path, 1.0)
        assert path.read_bytes() == content


def test_a_capture_that_was_cut_off_keeps_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    _capture(path, [5, 6])
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    shift_capture(path, 1.0)
    assert path.read_bytes()[-9:] == whole[-19:-10]
