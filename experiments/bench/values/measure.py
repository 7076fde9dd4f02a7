"""Measurement of one size in one round.

Each part is a process of its own, because a process uses one size of values.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from experiments.bench.switch import native_programs
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.workloads import WORKLOADS
from hostlib.protocol.value_size import VARIABLE
from hostlib.protocol.wire import KV_HEADER_BYTES
from hostlib.transport.endpoint import EndpointOptions

PLAIN: Final = "l3"
TRAFFIC: Final = tuple(one.name for one in WORKLOADS if one.name != PLAIN)
"""Workloads of the switch's benchmark that carry values."""
HOST_BYTES: Final = 1 << 18
"""Bytes of a block that hosts fetch or put."""
HOST_BLOCKS: Final = 1000
TIMEOUT_S: Final = 600.0
ADDRESS: Final = "127.251.0.1"
UDP, ECHO, SWITCH = "bare UDP", "bare echo", "switch"

Costs = dict[str, float]
"""Nanoseconds of CPU time a byte of value, by part; see `parts`."""


def parts() -> tuple[str, ...]:
    """Return the names of all parts that are measured, in the order in which they are shown."""
    moved = tuple(f"{who}, {what}" for what in TRAFFIC for who in (ECHO, SWITCH))
    hosts = tuple(f"{who}, {what}" for what in ("GET", "PUT") for who in ("node", "storage node"))
    return (f"{UDP}, sender", f"{UDP}, receiver", *moved, *hosts)


def measure(size_bytes: int, seconds: float, engines: Sequence[str]) -> Costs:
    """Return each part's CPU time a byte at this size; if a part fails, raises BenchError with its output."""
    _run(size_bytes, "-m", "hostlib.native")  # compiles the core of this size if it is missing
    costs = _bare_udp(size_bytes, seconds)
    costs |= _switch(size_bytes, seconds, engines)
    for what, arguments in {"GET": (), "PUT": ("--put",)}.items():
        costs |= _hosts(size_bytes, what, arguments)
    return costs


def _switch(size_bytes: int, seconds: float, engines: Sequence[str]) -> Costs:
    """Return the CPU time a byte of echo and switch.

    Each has a core for itself, so a byte takes a second over the bytes that pass in a second without loss.
    """
    with tempfile.TemporaryDirectory(prefix="weir-values-") as folder:
        _run(
            size_bytes, "-m", "experiments.bench.switch", "--rounds", "1", "--seconds", f"{seconds:g}",
            "--engines", ",".join(engines), "--workloads", ",".join(TRAFFIC), "--results", folder, "--quiet",
        )  # fmt: skip
        workloads = json.loads((Path(folder) / "summary.json").read_text())["workloads"]
    names = {"echo": ECHO, "embedded": SWITCH}
    return {
        f"{names.get(engine, engine)}, {what}": 1e9 / (size_bytes * one["lossless_per_s"]["median"])
        for what, by_engine in workloads.items()
        for engine, one in by_engine.items()
    }


def _hosts(size_bytes: int, what: str, arguments: Sequence[str]) -> Costs:
    figures = json.loads(
        _run(
            size_bytes, "-m", "hostlib.tools.bench", "--receive-one-by-one", "--blocks", str(HOST_BLOCKS),
            "--block-bytes", str(HOST_BYTES), "--chain", "4", *arguments,
        )
    )  # fmt: skip
    return {
        f"{who}, {what}": 1000 * figures[f"{key}_us_per_fragment"] / size_bytes
        for who, key in {"node": "client", "storage node": "storage"}.items()
    }


def _bare_udp(size_bytes: int, seconds: float) -> Costs:
    """Measure a bare sender and receiver of the same datagrams, in batches as large as those of hosts."""
    datagram_bytes = KV_HEADER_BYTES + size_bytes
    together = EndpointOptions.of_link(0).gso_datagrams(datagram_bytes)
    program = str(native_programs.program("udp"))
    duration_ms = str(round(1000 * seconds))
    receive = [program, "receive", ADDRESS, str(datagram_bytes), duration_ms]
    send = [program, "send", ADDRESS, str(datagram_bytes), str(together), duration_ms]
    with subprocess.Popen(receive, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        if receiver.stdout.readline().strip() != "ready":
            raise BenchError(receiver.communicate()[1].strip())
        sender = subprocess.run(send, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        received, complaint = receiver.communicate(timeout=TIMEOUT_S)
    if sender.returncode or receiver.returncode:
        raise BenchError(sender.stderr.strip() or complaint.strip())
    outputs = {f"{UDP}, sender": sender.stdout, f"{UDP}, receiver": received}
    return {part: _ns_a_byte(text, size_bytes) for part, text in outputs.items()}


def _ns_a_byte(output: str, size_bytes: int) -> float:
    datagrams, cpu_ns = map(int, output.split())
    if not datagrams:
        raise BenchError(f"no datagram with {size_bytes} bytes of value came through")
    return cpu_ns / (datagrams * size_bytes)


def _run(size_bytes: int, *arguments: str) -> str:
    environment: Mapping[str, Any] = {**os.environ, VARIABLE: str(size_bytes)}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if done.returncode:
        raise BenchError(f"{' '.join(arguments)}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout
