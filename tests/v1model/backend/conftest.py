"""Switches that run programs of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from v1model.backend import build
from v1model.ir import Program
from v1model.switch import Switch


@pytest.fixture
def load() -> Iterator[Callable[[Program], Switch]]:
    """load(program): a switch that runs it, closed after the test."""
    switches: list[Switch] = []

    def load_program(program: Program) -> Switch:
        switches.append(Switch(build(program, quick=True)))
        return switches[-1]

    yield load_program
    for switch in switches:
        switch.close()
