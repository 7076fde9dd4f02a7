"""Recording of a run's packets: captures (PCAP) and traces of its requests (TRACES)."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from emulator.capture import WHOLE_PACKETS, Capture, CapturePlace, capturing, place_of
from emulator.emulation import Measurements
from emulator.pcapng import write_pcapng
from emulator.result import revision
from emulator.scenario import Scenario
from emulator.traces import EXPRESSION, HEADER_BYTES, Clock, write_traces
from topologies.running import RunningNetwork


class Recording:
    """Recorder of the runs of a scenario, as its options ask for."""

    def __init__(self, scenario: Scenario, warn: Callable[[str], None]) -> None:
        """Raise CaptureError for a place that does not exist."""
        self._scenario, self._warn = scenario, warn
        options, fabric = scenario.options, scenario.fabric
        self._captured = {name: place_of(fabric, name) for name in options.emulation.pcap}
        self._traced = (
            {switch: CapturePlace(switch) for switch in fabric.switches} if options.emulation.traces else {}
        )

    def play(self, network: RunningNetwork, name: str, play: Callable[[], Measurements]) -> Measurements:
        """Call `play` and record it as results/pcap/NAME.PLACE.pcapng and results/traces/NAME.*.json."""
        with tempfile.TemporaryDirectory(prefix="capture-", dir=network.directory) as folder:
            pcap, traces = Path(folder) / "pcap", Path(folder) / "traces"
            pcap.mkdir()
            traces.mkdir()
            full_captures, header_captures = list(self._captured.values()), list(self._traced.values())
            with (
                capturing(network, full_captures, pcap, "", WHOLE_PACKETS) as captures,
                capturing(network, header_captures, traces, EXPRESSION, HEADER_BYTES) as traced,
            ):
                measured = play()
            self._keep_captures(network, name, captures)
            if self._traced:
                self._write_traces(network, name, measured, traced)
        return measured

    def _keep_captures(self, network: RunningNetwork, name: str, captures: list[Capture]) -> None:
        for (place_name, place), capture in zip(self._captured.items(), captures, strict=True):
            path = self._scenario.options.emulation.results / "pcap" / f"{name}.{place_name}.pcapng"
            named: dict[int, str] | str = f"{place.interface} to {place_name}"
            if place.port is None:
                peers = self._peers(place.switch)
                named = {
                    at: f"{one} to {peers[one]}" for at, one in _interfaces(network, place.switch).items()
                }
            write_pcapng(path, capture.file, named)
            self._complain(place_name, capture)

    def _write_traces(
        self, network: RunningNetwork, name: str, measured: Measurements, captures: list[Capture]
    ) -> None:
        options, fabric = self._scenario.options, self._scenario.fabric
        files = {}
        for switch, capture in zip(self._traced, captures, strict=True):
            self._complain(switch, capture)
            peers = self._peers(switch)
            files[switch] = capture.file, {at: peers[one] for at, one in _interfaces(network, switch).items()}
        left_out = write_traces(
            options.emulation.results / "traces",
            name,
            fabric,
            files,
            {node: worker["records"] for node, worker in measured.workers.items()},
            Clock(time.time_ns() - time.monotonic_ns(), measured.start_s),
            {
                "weir.mode": name,
                "weir.seed": str(options.workload.seed),
                "weir.engine": options.emulation.engine,
                "weir.revision": revision(),
                "weir.sigma": f"{self._scenario.scale.sigma:g}",
            },
        )
        if left_out:
            self._warn(
                f"the traces of {name} have fragments of the slowest requests only; "
                f"those of {left_out} requests end at blocks"
            )

    def _peers(self, switch: str) -> dict[str, str]:
        """Return the peer behind each interface of a switch."""
        return {f"{switch}-eth{port.number}": port.peer for port in self._scenario.fabric.ports(switch)}

    def _complain(self, place: str, capture: Capture) -> None:
        if capture.lost:
            self._warn(
                f"the capture at {place} lacks {capture.lost:,} packets: the machine was too busy for it"
            )


def _interfaces(network: RunningNetwork, switch: str) -> dict[int, str]:
    """Return the names of a switch's interfaces by index."""
    names = {name for _, name in network.interfaces(switch)}
    links = json.loads(network.ask(switch, "ip -j link show"))
    return {link["ifindex"]: link["ifname"] for link in links if link["ifname"] in names}
