"""Digest samples collected into lists, as P4Runtime's DigestEntry.Config demands."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from v1model.backend.layout import value_width, wire_bytes
from v1model.backend.program import digest_fields
from v1model.dataplane import DataPlaneError, DigestConfig, DigestList

if TYPE_CHECKING:
    from v1model.binding.library import Handle
    from v1model.ir import Digest, Program

DEFAULT_LIST_SIZE = 1024  # simple_switch's for a max_list_size of 0
MAX_LIST_SIZE = 65536  # a longer list without a timeout would take all memory
MAX_LIST_BYTES = 2 << 20  # of the message: gRPC's clients take 4 MiB by default
_SAMPLE_BYTES, _FIELD_BYTES = 10, 8  # what a message adds to a sample and to each of its fields, at most
MAX_UNACKNOWLEDGED = 65536  # samples remembered for each digest
MAX_UNACKNOWLEDGED_BYTES = 64 << 20  # the same in bytes of messages: a sample may have kilobytes

EAGER = 8
"""Part of max_timeout_ns for which a list waits after a pause of max_timeout_ns: 1 / EAGER.

So the first reports after a pause are sent soon, while a stream of reports still costs few lists. P4Runtime's
timeout is the longest delay.
"""

Sample = tuple[int, ...]


def longest_wait(timeout: float, pause: float) -> float:
    """Return how long a list waits that begins `pause` after the last one was sent; both in the same unit."""
    return timeout / EAGER if pause > timeout else timeout


@dataclass(slots=True)
class Collector:
    """Collector of one digest's samples. All times are in nanoseconds of the switch's clock."""

    digest: Digest
    widths: list[int]
    config: DigestConfig
    samples: list[Sample] = field(default_factory=list)
    first_ns: int = 0
    sent_ns: float = -inf
    """Time at which the last list was sent."""
    lists: int = 0
    unacknowledged: deque[tuple[int, int, Sample]] = field(default_factory=deque)  # sent at, list, sample
    remembered: set[Sample] = field(default_factory=set)
    most: int = field(init=False)
    """Limit of samples in a list, whatever a controller asks for."""
    most_remembered: int = field(init=False)

    def __post_init__(self) -> None:
        sample_bytes = _SAMPLE_BYTES + sum(_FIELD_BYTES + wire_bytes(width) for width in self.widths)
        self.most = max(1, min(MAX_LIST_SIZE, MAX_LIST_BYTES // sample_bytes))
        self.most_remembered = max(1, min(MAX_UNACKNOWLEDGED, MAX_UNACKNOWLEDGED_BYTES // sample_bytes))

    def add(self, data: bytes, now_ns: int) -> DigestList | None:
        sample = self._unpack(data)
        if self.config.ack_timeout_ns:
            self._forget(now_ns)
            if sample in self.remembered or len(self.remembered) >= self.most_remembered:
                return None
            self.remembered.add(sample)
            self.unacknowledged.append((now_ns, self.lists + 1, sample))
        if not self.samples:
            self.first_ns = now_ns
        self.samples.append(sample)
        return None if self.room else self.flush(now_ns)

    @property
    def room(self) -> int:
        """Return how many samples the list may still take."""
        most = min(self.config.max_list_size or DEFAULT_LIST_SIZE, self.most)
        return max(0, most - len(self.samples))

    def _unpack(self, data: bytes) -> Sample:
        values, at = [], 0
        for width in self.widths:
            size = wire_bytes(width)
            values.append(int.from_bytes(data[at : at + size], "big"))
            at += size
        return tuple(values)

    def flush(self, now_ns: int) -> DigestList:
        self.lists += 1
        self.sent_ns = now_ns
        data, self.samples = tuple(self.samples), []
        return DigestList(self.digest.name, self.lists, now_ns, data)

    def deadline_ns(self) -> int | None:
        if not self.samples or not self.config.max_timeout_ns:
            return None
        return self.first_ns + int(longest_wait(self.config.max_timeout_ns, self.first_ns - self.sent_ns))

    def _forget(self, now_ns: int) -> None:
        """Drop samples whose acknowledgement is overdue."""
        while self.unacknowledged and self.unacknowledged[0][0] + self.config.ack_timeout_ns <= now_ns:
            self.remembered.discard(self.unacknowledged.popleft()[2])

    def acknowledge(self, list_id: int) -> None:
        keep = [entry for entry in self.unacknowledged if entry[1] != list_id]
        for _, acknowledged, sample in self.unacknowledged:
            if acknowledged == list_id:
                self.remembered.discard(sample)
        self.unacknowledged = deque(keep)


class Digests:
    def __init__(self, handle: Handle, program: Program) -> None:
        self._handle = handle
        self._digests = {digest.name: (number, digest) for number, digest in enumerate(program.digests)}
        self._collectors: dict[int, Collector] = {}
        self._lock = threading.Lock()  # used by the control plane and the reader of events

    def clear(self) -> None:
        with self._lock:
            self._collectors.clear()

    def _number(self, name: str) -> int:
        if name not in self._digests:
            raise DataPlaneError(
                "NOT_FOUND", f"no digest {name}; there are: {', '.join(self._digests) or 'none'}"
            )
        return self._digests[name][0]

    def set_digest(self, name: str, config: DigestConfig | None) -> None:
        number = self._number(name)
        self._handle.call("enable_digest", number, config is not None)
        with self._lock:
            if config is None:
                self._collectors.pop(number, None)
            elif number in self._collectors:
                self._collectors[number].config = config
            else:
                digest = self._digests[name][1]
                widths = [value_width(field_type) for field_type in digest_fields(digest)]
                self._collectors[number] = Collector(digest, widths, config)

    def digests(self) -> dict[str, DigestConfig]:
        with self._lock:
            return {collector.digest.name: collector.config for collector in self._collectors.values()}

    def acknowledge(self, name: str, list_id: int) -> None:
        number = self._number(name)
        with self._lock:
            if number in self._collectors:
                self._collectors[number].acknowledge(list_id)

    def add(self, number: int, data: bytes, now_ns: int) -> DigestList | None:
        """Take a sample from the runtime; return the list that it completes, if any."""
        with self._lock:
            collector = self._collectors.get(number)
            return collector.add(data, now_ns) if collector else None

    def due(self, now_ns: int) -> list[DigestList]:
        """Return the lists whose timeout is over."""
        with self._lock:
            return [
                each.flush(now_ns)
                for each in self._collectors.values()
                if (at := each.deadline_ns()) is not None and at <= now_ns
            ]

    def samples_wanted(self) -> int:
        """Return the number of samples after which a reader has to look before a deadline.

        A sample that begins a list sets its deadline, and one that completes a list ends it.
        """
        with self._lock:
            collectors = list(self._collectors.values())
        return max(1, min((each.room if each.samples else 1 for each in collectors), default=1))

    def next_deadline_ns(self) -> int | None:
        with self._lock:
            deadlines = [each.deadline_ns() for each in self._collectors.values()]
        return min((at for at in deadlines if at is not None), default=None)
