"""The controller as a process: lines, results, signals, and what it says of bad input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest

from controller import process as controller_process
from controller.__main__ import main
from controller.block_id import block_id
from controller.config import Config, CostOptions, HomeLink, PoolSize, config_text, load_config
from controller.errors import ControllerError
from controller.p4_constants import OUTCOME_NAMES, OUTCOMES, SERVED
from controller.p4runtime.p4info import load_p4info
from controller.policies import POLICY_NAMES, make_policy
from controller.policies.eventlog import read_events, read_head
from controller.policies.events import Miss
from controller.pool.residual_value import ResidualValue
from controller.pool.slots import Slots
from controller.process import ControllerProcess
from tests.controller.live import DEFINES, FRAGMENTS, TENANT, LiveSwitch, config, serve_block
from tests.controller.test_config import SWITCH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controller.policies.base import Policy
    from topologies.engines import Artifacts, Engine

KEY = block_id(TENANT, bytes(range(16)))
END_S = 30.0
"""It takes a fifth of a second on an idle machine, but tests run on busy ones."""

root = pytest.mark.root


def test_the_links_rate_reaches_the_policy_and_what_decides_on_reclaiming(
    compiled: tuple[Engine, Artifacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    store = IPv4Address("10.0.0.2")

    def policy(*arguments: Any, **options: Any) -> Policy:
        told.append(options["link_bit_s"])
        return make_policy(*arguments, **options)

    def residual(*arguments: Any) -> ResidualValue:
        made = ResidualValue(*arguments)
        told.extend(made.link_bit_s(home) for home in (store, IPv4Address("10.0.0.99")))
        return made

    monkeypatch.setattr(controller_process, "make_policy", policy)
    monkeypatch.setattr(controller_process, "ResidualValue", residual)
    _, made = compiled
    size = PoolSize(DEFINES["POOL_BLOCKS"], DEFINES["POOL_SLOTS"], FRAGMENTS)
    switch = replace(SWITCH, p4info=made.p4info, device_config=made.device_config, pool=size)
    costs = CostOptions(link_bit_s=123e6, home_links=(HomeLink(store, 45e6),))
    with ControllerProcess(Config((switch,), costs=costs)):
        assert told == [45e6, 123e6, 123e6]


@pytest.mark.parametrize(("phantom", "known_as"), [(False, KEY), (True, bytes(255 - byte for byte in KEY))])
def test_a_router_hears_of_a_phantoms_blocks_under_other_keys(
    compiled: tuple[Engine, Artifacts], phantom: bool, known_as: bytes
) -> None:
    """It would send requests to where these blocks seem to be, and the traffic be another than without."""
    _, made = compiled
    size = PoolSize(DEFINES["POOL_BLOCKS"], DEFINES["POOL_SLOTS"], FRAGMENTS)
    switch = replace(SWITCH, p4info=made.p4info, device_config=made.device_config, pool=size)
    with ControllerProcess(Config((switch,), phantom=phantom)) as process:
        process.workers[0].pool.resident[KEY] = Slots(0, 1, 1)
        assert process.held() == {switch.name: [known_as]}


@contextmanager
def running(config_file: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "controller", "--config", str(config_file), *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def next_event(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next line of a kind; the test's timeout ends a wait in vain."""
    assert process.stdout is not None
    for line in process.stdout:
        said: dict[str, Any] = json.loads(line)
        if said["event"] == event:
            return said
    raise AssertionError(f"the controller ended without {event!r}: {process.communicate()[1]}")


def end(process: subprocess.Popen[str]) -> float:
    """Seconds until the process has ended by itself, with exit code 0."""
    before_s = time.monotonic()
    assert process.wait(60) == 0
    return time.monotonic() - before_s


@root
def test_it_is_ready_reports_progress_and_leaves_results(switch: LiveSwitch, tmp_path: Path) -> None:
    file, results = tmp_path / "controller.json", tmp_path / "results.json"
    file.write_text(config_text(config(switch, report_count=1)))
    with running(
        file, "--policy", "lfu", "--results", str(results), "--event-logs", str(tmp_path)
    ) as process:
        next_event(process, "ready")
        switch.fetch(KEY)
        while not next_event(process, "progress")["resident"]:
            pass
        serve_block(switch, KEY)
        assert process.stdin is not None
        process.stdin.write("stop\n")
        process.stdin.flush()
        assert end(process) < END_S
    said = json.loads(results.read_text())
    assert said["policy"] == "lfu"
    assert said["admitted"] == said["digests"] == 1
    # A quick controller has admitted it before its last fragment was fetched for the first time.
    assert FRAGMENTS <= said["outcomes"][SERVED] < 2 * FRAGMENTS
    assert said["outcomes"].keys() <= set(OUTCOME_NAMES)
    assert said["p4runtime_writes"] > 0
    assert said["rpc_bytes_sent"] > 0
    assert said["stream_bytes_received"] > 0
    assert said["cpu_s"] > 0
    assert said["switches"]["s1"]["pool"]["admitted"] == 1
    log = (tmp_path / "s1.jsonl").read_text().splitlines()
    head = read_head(log)
    assert head is not None
    assert (head.policy, head.link_bit_s) == ("lfu", CostOptions().link_bit_s)
    assert 0 < head.capacity_blocks <= DEFINES["POOL_BLOCKS"]
    events = list(read_events(log))
    assert [event.key for event in events if isinstance(event, Miss)] == [KEY]


@root
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_signals_end_it(switch: LiveSwitch, tmp_path: Path, number: signal.Signals) -> None:
    file, results = tmp_path / "controller.json", tmp_path / "results.json"
    file.write_text(config_text(config(switch)))
    with running(file, "--results", str(results)) as process:
        next_event(process, "ready")
        process.send_signal(number)
        assert end(process) < END_S
    assert json.loads(results.read_text())["admitted"] == 0


@root
def test_without_the_pool_the_switch_only_forwards(switch: LiveSwitch, tmp_path: Path) -> None:
    file, results = tmp_path / "controller.json", tmp_path / "results.json"
    file.write_text(config_text(replace(config(switch, report_count=1), pool=False, merging=False)))
    with running(file, "--results", str(results)) as process:
        next_event(process, "ready")
        for _ in range(3):
            switch.fetch(KEY)
        process.send_signal(signal.SIGTERM)
        end(process)
    said = json.loads(results.read_text())
    assert (said["digests"], said["admitted"]) == (0, 0)
    assert said["outcomes"]["unmerged"] == said["outcomes"]["reply"] == 3 * FRAGMENTS


@root
def test_a_switch_that_is_gone_does_not_hold_up_the_end(switch: LiveSwitch, tmp_path: Path) -> None:
    file, results = tmp_path / "controller.json", tmp_path / "results.json"
    file.write_text(config_text(config(switch)))
    with running(file, "--results", str(results)) as process:
        next_event(process, "ready")
        switch.kill()
        while next_event(process, "progress")["connected"]:
            pass
        assert process.stdin is not None
        process.stdin.close()  # as when whoever started it has died
        assert end(process) < END_S
    assert results.exists()


def test_an_unknown_policy_is_answered_with_those_that_exist(config_file: Path) -> None:
    with running(config_file, "--policy", "magic") as process:
        _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.startswith("error: no policy 'magic': choose one of")
    assert all(name in errors for name in POLICY_NAMES)
    assert errors.count("\n") == 1


def test_a_pool_larger_than_the_program_s_is_refused(config_file: Path) -> None:
    content = json.loads(config_file.read_text())
    content["switches"][0]["pool"]["blocks"] += 1
    config_file.write_text(json.dumps(content))
    with pytest.raises(
        ControllerError, match=r"switch s1: pool\.blocks is 9, but the program was compiled for 8"
    ):
        ControllerProcess(load_config(config_file))


def test_a_program_with_other_outcomes_is_refused_before_it_runs(config_file: Path, tmp_path: Path) -> None:
    """Its counters would come without a name."""
    config = load_config(config_file)
    p4info = load_p4info(config.switches[0].p4info)
    next(one for one in p4info.counters if one.preamble.name == OUTCOMES).size += 1
    changed = tmp_path / "changed.p4info.txtpb"
    changed.write_text(str(p4info))
    switches = (replace(config.switches[0], p4info=changed),)
    count = len(OUTCOME_NAMES)
    with pytest.raises(
        ControllerError, match=f"counts {count + 1} outcomes and the controller {count}: compile"
    ):
        ControllerProcess(replace(config, switches=switches))


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    assert "--config FILE" in said
    assert "ready" in said
    assert POLICY_NAMES[0] in said


@pytest.fixture
def config_file(compiled: tuple[Any, Any], tmp_path: Path) -> Path:
    """A valid configuration, of a switch that is not there."""
    file = tmp_path / "controller.json"
    file.write_text(config_text(config(LiveSwitch(*compiled, tmp_path / "switch.log"))))
    return file


def test_a_switch_that_is_not_there_is_waited_for(config_file: Path) -> None:
    with running(config_file) as process:
        assert next_event(process, "progress")["connected"] == 0
        process.send_signal(signal.SIGTERM)
        assert end(process) < END_S
