"""Load generator, and the figures of one of its runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from experiments.bench.switch import native_programs
from experiments.bench.switch.cables import Cables
from experiments.bench.switch.errors import BenchError

MOST_LOSS: Final = 0.001
"""Share of frames without a reply up to which a run counts as lossless."""
SENT_SHARE: Final = 0.99
"""Share of the frames asked for below which the generator itself, not the engine, is the limit."""
NUMBERS: Final = 1 << 32
_END_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    """Counts of frames in one run of the generator.

    Latency counts from before the send to after the receive.
    """

    rate_per_s: int
    """Frames a second that the generator was to send; 0: as many as it can."""
    seconds: float
    sent: int
    failed: int
    """Number of frames that the interface did not take."""
    answered: int
    answered_while_sending: int
    late: int
    """Number of replies that came too long after the last request to count."""
    repeated: int
    forwarded: int
    """Number of frames that reached the storage node."""
    own_drops: int
    """Number of frames that were lost because the generator's buffer was full."""
    idle_share: float
    """Share of the time in which the generator had nothing to do."""
    p50_us: float = 0.0
    p99_us: float = 0.0

    @property
    def sent_per_s(self) -> float:
        """Return the frames a second that the engine was offered."""
        return self.sent / self.seconds

    @property
    def answered_per_s(self) -> float:
        """Return the replies a second while frames were being sent."""
        return self.answered_while_sending / self.seconds

    @property
    def sent_at_rate(self) -> bool:
        """Return whether the generator sent what it was asked for and lost none of the replies itself."""
        return self.sent >= SENT_SHARE * self.rate_per_s * self.seconds and self.own_drops == 0

    @property
    def lossless(self) -> bool:
        """Return whether at most 0.1 % of the frames got no reply."""
        return self.sent > 0 and self.sent + self.failed - self.answered <= MOST_LOSS * self.sent


class LoadGenerator:
    """Load generator at one set of cables."""

    def __init__(self, cables: Cables, cpus: str) -> None:
        self._cables, self._cpus = cables, cpus
        self._program = native_programs.program("load")
        self._next_number = 0

    def run(self, plan: Path, used: Sequence[int], rate_per_s: int, seconds: float) -> Trial:
        """Send a plan's frames into the cables in use; rate 0 for as fast as possible. Raises BenchError."""
        ends = [self._cables.generator_ends[cable] for cable in used]
        numbers = [str(rate_per_s), str(round(seconds * 1000)), str(self._next_number)]
        # A number is used again only after all others, so that a reply belongs to one run only.
        self._next_number = (self._next_number + (1 << 24)) % NUMBERS
        process = self._cables.generator.popen(
            [str(self._program), str(plan), *numbers, *ends],
            self._cpus,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            output, complaint = process.communicate(timeout=seconds + _END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BenchError("the load generator did not end") from None
        if process.returncode:
            raise BenchError(f"load generator: {complaint.decode().strip()}")
        return Trial(rate_per_s=rate_per_s, **json.loads(output))
