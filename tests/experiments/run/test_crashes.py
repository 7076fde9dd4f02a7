"""A process that ends while a trace is played is named, with its last lines. Needs root."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from commands.command import Screen
from commands.errors import CrashError
from emulator.emulation import Emulation
from emulator.host_configs import INDEX
from emulator.options import parse_options
from emulator.result import PROGRAM
from emulator.scenario import make_scenario
from experiments.logs import open_network
from scenario.modes import MODES
from tests.slow import rest_slow
from topologies.engines import Embedded
from topologies.fabric import Fabric
from topologies.network import Network

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
ABOUT = {"revision": "abc", "seed": 1}
SMALL = ("--requests", "40", "--hosts", "2", "--stores", "1", "--speed", "3", "--scale", "40000")


@dataclass
class Stage:
    """A network to play on, and where results go."""

    emulation: Emulation
    network: Network
    results: Path


def process_of(network: Network, name: str) -> int:
    """The pid of the one that writes to NAME.log."""
    for entry in Path("/proc").iterdir():
        try:
            log = (entry / "fd" / "2").readlink()
        except OSError:
            continue
        if log.name == f"{name}.log" and network.directory in log.parents:
            return int(entry.name)
    raise AssertionError(f"no process writes to {name}.log")


@contextmanager
def staged(results: Path, *more: str) -> Iterator[Stage]:
    """A network to play on."""
    scenario = make_scenario(parse_options((*SMALL, *more), "test", ""))
    with open_network(Screen(), scenario.fabric, Embedded(), results / "whole", ABOUT) as network:
        artifacts = Embedded().compile(PROGRAM, scenario.defines, network.directory)
        yield Stage(Emulation(scenario, network, artifacts), network, results)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One network for all: each play starts its processes anew."""
    results = tmp_path_factory.mktemp("results")
    with staged(results) as made:
        yield made
    logged = [json.loads(line) for line in (results / "whole" / "log.jsonl").read_text().splitlines()]
    assert {"node1", "node2", "store1"} <= {record["process"] for record in logged}


@pytest.mark.parametrize(
    "name",
    rest_slow(["s1"], ["store1", "s1", "node2", "controller"]),
)
def test_who_crashed_is_named_with_its_last_lines(stage: Stage, name: str) -> None:
    check_crash_of(stage, name)


@pytest.mark.slow
def test_an_index_that_crashed_is_named_with_its_last_lines(tmp_path: Path) -> None:
    with staged(tmp_path, "--stores", "0") as lending:
        check_crash_of(lending, INDEX)


def check_crash_of(stage: Stage, name: str) -> None:
    killed: list[int] = []

    def kill(*_: object) -> None:
        if not killed:
            killed.append(process_of(stage.network, name))
            os.kill(killed[0], signal.SIGABRT)

    with pytest.raises(CrashError) as caught:
        stage.emulation.play(MODES["pool"], kill)
    crash = caught.value
    assert (crash.process, crash.how) == (name, "was ended by SIGABRT")
    assert any("Fatal Python error: Aborted" in line for line in crash.last_lines)
    assert str(crash).startswith(f"{name} was ended by SIGABRT. The last that it said:\n  ")
    assert not Path(f"/proc/{killed[0]}").exists()


def crash_after(fabric: Fabric, results: Path, written: Mapping[str, object] | None) -> None:
    with open_network(Screen(), fabric, Embedded(), results, ABOUT):
        if written:
            (results / "summary.json").write_text(json.dumps(written))
        raise CrashError("store1", -9, ["its last line"])


def test_the_summary_says_so_and_keeps_what_was_measured(tmp_path: Path) -> None:
    fabric = make_scenario(parse_options(SMALL, "test", "")).fabric
    summary = tmp_path / "summary.json"
    for written in ({"revision": "abc", "points": [1]}, None):
        summary.write_text('{"of an earlier run": true}')
        os.utime(summary, (0, 0))
        with pytest.raises(CrashError):
            crash_after(fabric, tmp_path, written)
        crashed = {"process": "store1", "how": "was ended by SIGKILL", "last_lines": ["its last line"]}
        assert json.loads(summary.read_text()) == {**(written or ABOUT), "crashed": crashed}
