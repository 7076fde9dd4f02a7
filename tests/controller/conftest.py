"""Engines for the live tests: each test runs on the embedded switch, and on BMv2 where it is installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.controller.live import DEFINES, live_switch
from topologies.engines import make_engine
from topologies.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controller.live import LiveSwitch
    from topologies.engines import Artifacts, Engine

PROGRAM = Path(__file__).parents[2] / "p4" / "weir.p4"


@pytest.fixture(scope="session", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def compiled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Engine, Artifacts]:
    """An engine and the program compiled for it."""
    try:
        engine = make_engine(request.param)
    except EngineError as error:
        pytest.skip(str(error))
    return engine, engine.compile(PROGRAM, DEFINES, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def switch(compiled: tuple[Engine, Artifacts], tmp_path: Path) -> Iterator[LiveSwitch]:
    """A running switch with three ports, without a program."""
    if os.geteuid() != 0:
        pytest.skip("needs root: the switch's ports are veth interfaces")
    with live_switch(*compiled, tmp_path / "switch.log") as running:
        yield running
