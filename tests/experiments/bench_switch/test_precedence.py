"""Precedence is taken for a while and given back."""

import os
import subprocess

import pytest

from experiments.bench_switch.precedence import AUTOGROUP, HIGHEST, precedence


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a higher priority needs root")
def test_what_is_started_meanwhile_comes_first() -> None:
    before, session = os.getpriority(os.PRIO_PROCESS, 0), AUTOGROUP.exists() and AUTOGROUP.read_text()
    with precedence():
        child = subprocess.run(("nice",), capture_output=True, text=True, check=True)
        assert int(child.stdout) == HIGHEST
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    assert (AUTOGROUP.exists() and AUTOGROUP.read_text()) == session
