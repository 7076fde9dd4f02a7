"""A server compiles a run's program before its switches start: one that still compiles measures that."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import ServerError
from cluster.fabric_text import to_message
from cluster.session import Session
from emulator.result import ROOT
from tests.cluster.servers import missing
from topologies.shaping import DEFAULT_MTU_BYTES
from topologies.star import star
from v1model.compile import compile_p4

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PROGRAM = "tests/differential/multicast.p4"
FABRIC = star(1, 1, 1e9)
NETWORK: dict[str, Any] = {
    "fabric": to_message(FABRIC),
    "vertices": [*FABRIC.hosts, *FABRIC.switches],
    "tunnels": [],
    "engine": "embedded",
    "delay_ms": 0.0,
    "queue_packets": None,
    "mtu_bytes": DEFAULT_MTU_BYTES,
}


def test_what_a_run_has_an_agent_compile_is_there_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["env", f"WEIR_CACHE={tmp_path}", sys.executable, "-m", "cluster.agent"]
    with tempfile.TemporaryFile() as words, Session("b", command, words) as agent:
        agent.ask("hello")
        agent.ask("open", **NETWORK)
        with pytest.raises(ServerError, match="no_such_file"):
            agent.ask("compile", program="no_such_file.p4", defines={})
        agent.ask("compile", program=PROGRAM, defines={})
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path))
    assert compile_p4(ROOT / PROGRAM, quick=True).quick is None
