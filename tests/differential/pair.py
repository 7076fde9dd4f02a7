"""Two switches with one program: the embedded one and BMv2. Packets go into both; what comes out, what is
reported and what is counted has to be the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from tests.conformance.bmv2 import CPU_PORT
from tests.differential.reference import Digests, DirectCounters, Outputs, Reference
from v1model.dataplane import CounterValue, DigestList, Replica
from v1model.switch import Switch

MAX_DIFFERENCES = 3  # of one run: more say nothing new
STEP_US = 10
BATCH = 32  # packets at a time: an egress queue of BMv2 holds 64, and drops what is more

Packet = tuple[int, bytes]  # port, data


class Pair:
    """`embedded` and `reference` have the same program and the same entries."""

    def __init__(self, embedded: Switch, reference: Reference) -> None:
        self.embedded, self.reference = embedded, reference
        self.sent = 0
        self._differences: list[str] = []
        self._now_us = 1_000_000

    def send(self, packets: Iterable[Packet]) -> None:
        """Until there are too many differences."""
        remaining = iter(packets)
        while (batch := list(islice(remaining, BATCH))) and len(self._differences) < MAX_DIFFERENCES:
            self._send_batch(batch)

    def _send_batch(self, packets: Sequence[Packet]) -> None:
        ours = [self._inject(*packet) for packet in packets]
        packet_ins = [data for outputs in ours for data in outputs.pop(CPU_PORT, [])]
        theirs = self.reference.exchange(packets)
        for (port, data), our, their in zip(packets, ours, theirs, strict=True):
            self.sent += 1
            self._compare(f"packet {self.sent} into port {port}: {data.hex()}", _sorted(our), _sorted(their))
        batch = f"packets {self.sent - len(packets) + 1} to {self.sent}"
        their_packet_ins = self.reference.take_packet_ins(len(packet_ins))
        self._compare(f"PacketIns of {batch}", sorted(packet_ins), sorted(their_packet_ins))
        digests = self._digests()
        expected = sum(map(len, digests.values()))
        self._compare(f"digests of {batch}", digests, self.reference.take_digests(expected))

    def finish(self) -> None:
        """What came late, and all counters. Raises AssertionError with all differences."""
        self.reference.wait_for_late_messages()
        self._compare("PacketIns after the last packet", [], self.reference.take_packet_ins(0))
        self._compare("digests after the last packet", {}, self.reference.take_digests(0))
        self._compare("counters", self._counters(), self.reference.counters())
        self._compare_entries()
        ours, theirs = self.embedded.multicast_groups(), self.reference.multicast_groups()
        self._compare("multicast groups", _unordered(ours), _unordered(theirs))
        self._compare("direct counters", self._direct_counters(), self.reference.direct_counters())
        assert not self._differences, "\n".join(self._differences[:MAX_DIFFERENCES])

    def _inject(self, port: int, data: bytes) -> Outputs:
        self._now_us += STEP_US
        outputs: Outputs = defaultdict(list)
        for output in self.embedded.inject(port, data, timestamp_us=self._now_us):
            outputs[output.port].append(output.data)
        return outputs

    def _digests(self) -> Digests:
        digests: Digests = defaultdict(list)
        for event in self.embedded.wait_events(0):
            if isinstance(event, DigestList):
                digests[event.digest] += event.data
        return digests

    def _compare_entries(self) -> None:
        """All that P4Runtime reads from tables: what identifies an entry, and its action."""
        for table in self.reference.schema.tables.values():
            theirs = self.reference.entries(table)
            if theirs is not None:
                ours = self.reference.normal_entries(table.name, self.embedded.entries(table.name))
                self._compare(f"entries of {table.name}", ours, theirs)

    def _counters(self) -> dict[tuple[str, int], CounterValue]:
        names = [extern.name for extern in self.embedded.program.externs if extern.kind == "counter"]
        return {
            (name, index): value for name in names for index, value in enumerate(self.embedded.counters(name))
        }

    def _direct_counters(self) -> DirectCounters:
        tables = [table.name for table in self.reference.schema.tables.values() if table.has_direct_counter]
        return {
            self.reference.normal(entry): value
            for table in tables
            for entry, value in self.embedded.direct_counters(table)
        }

    def _compare(self, what: str, ours: object, theirs: object) -> None:
        if ours == theirs:
            return
        if isinstance(ours, dict) and isinstance(theirs, dict):
            keys = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
            ours, theirs = ({key: one[key] for key in keys if key in one} for one in (ours, theirs))
        self._differences.append(f"{what}\n    embedded: {_show(ours)}\n    BMv2:     {_show(theirs)}")


def _sorted(outputs: Outputs) -> Outputs:
    """BMv2 puts out of several threads."""
    return {port: sorted(packets) for port, packets in outputs.items()}


def _unordered(groups: Mapping[int, Sequence[Replica]]) -> dict[int, set[Replica]]:
    return {group: set(replicas) for group, replicas in groups.items()}


def _show(value: object) -> object:
    """With bytes in hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_show(item) for item in value]
    return {key: _show(item) for key, item in value.items()} if isinstance(value, dict) else value
