"""When a program is kept, and from which generation on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.errors import ConfigError
from controller.p4runtime.pipeline import ensure_pipeline
from controller.pool.slots import GENERATIONS
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

NOW_S = 1_800_000_000.25


class Switch:
    """Keeps what is installed, as a P4Runtime server does."""

    def __init__(self) -> None:
        self.config: Any = None
        self.installed = 0

    def pipeline(self) -> Any:
        return self.config

    def set_pipeline(self, p4info: Any, device_config: bytes, cookie: int) -> None:
        self.installed += 1
        self.config = p4runtime_pb2.ForwardingPipelineConfig(p4info=p4info)
        self.config.cookie.cookie = cookie


@pytest.fixture
def device_config(tmp_path: Path) -> Path:
    """A program."""
    file = tmp_path / "program"
    file.write_bytes(b"program")
    return file


def ensure(switch: Switch, device_config: Path, now_s: float, arch: str = "v1model") -> int:
    p4info = p4info_pb2.P4Info()
    p4info.pkg_info.arch = arch
    return ensure_pipeline(switch, p4info, device_config, now_s)  # type: ignore[arg-type]


def test_our_program_is_kept_and_generations_start_after_a_millisecond_each(device_config: Path) -> None:
    switch = Switch()
    assert ensure(switch, device_config, NOW_S) == 0
    assert ensure(switch, device_config, NOW_S + 10) == 10_250
    assert switch.installed == 1


def test_another_program_is_replaced(device_config: Path) -> None:
    switch = Switch()
    ensure(switch, device_config, NOW_S)
    assert ensure(switch, device_config, NOW_S + 1, arch="other") == 0
    device_config.write_bytes(b"changed")
    assert ensure(switch, device_config, NOW_S + 2, arch="other") == 0
    assert switch.installed == 3


def test_a_program_without_a_cookie_is_not_ours(device_config: Path) -> None:
    switch = Switch()
    switch.config = p4runtime_pb2.ForwardingPipelineConfig()
    ensure(switch, device_config, NOW_S)
    assert switch.installed == 1


@pytest.mark.parametrize("passed_s", [-3600, GENERATIONS / 1000])
def test_when_the_clock_cannot_tell_the_generation_it_is_installed_anew(
    device_config: Path, passed_s: float
) -> None:
    switch = Switch()
    ensure(switch, device_config, NOW_S)
    assert ensure(switch, device_config, NOW_S + passed_s) == 0
    assert switch.installed == 2


def test_a_program_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing: No such file"):
        ensure(Switch(), tmp_path / "nothing", NOW_S)
