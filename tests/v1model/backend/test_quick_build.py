"""Quick builds: what a switch runs until its full build is there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from v1model import full_build
from v1model.backend import CompiledProgram
from v1model.compile import compile_p4
from v1model.dataplane import DataPlaneError, TableEntry
from v1model.errors import CompileError
from v1model.frontend.preprocess import preprocess
from v1model.full_build import make_full_build
from v1model.ir import ActionCall, KeyMatch
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.switch import Switch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct h_t {} struct m_t {}
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control C(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    register<bit<32>>(4) seen;
    action to(bit<9> port) { s.egress_spec = port; }
    table panel { key = { s.ingress_port: exact; } actions = { to; NoAction; } size = 100; }
    apply {
        bit<32> count;
        seen.read(count, 0);
        seen.write(0, count + 1);
        panel.apply();
    }
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in h_t h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def source(tmp_path: Path, cache: Path) -> Path:
    """A program that is not in the cache."""
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM)
    return path


def quick(source: Path) -> CompiledProgram:
    compiled = compile_p4(source, quick=True)
    assert compiled.quick
    return compiled


def ports(switch: Switch, port: int) -> list[int]:
    return [output.port for output in switch.inject(port, b"x")]


def test_a_switch_goes_over_to_the_full_build_with_all_that_it_knows(source: Path) -> None:
    compiled = quick(source)
    assert not compiled.library.exists()
    with Switch(compiled) as switch:
        switch.insert(TableEntry("I.panel", (KeyMatch(1),), ActionCall("I.to", (2,))))
        assert ports(switch, 1) == [2]
        switch.start()  # it forwards, and goes on forwarding
        thread = make_full_build(switch)
        assert thread
        thread.join(60)
        assert switch.compiled.quick is None
        assert switch.handle.library.path == compiled.library
        switch.stop()
        assert ports(switch, 1) == [2]
        switch.insert(TableEntry("I.panel", (KeyMatch(3),), ActionCall("I.to", (4,))))
        assert ports(switch, 3) == [4]
        assert switch.register("I.seen", 0) == 3


def test_the_full_build_is_preferred_once_it_is_there(source: Path) -> None:
    first = quick(source)
    assert compile_p4(source, quick=True).quick == first.quick
    full = compile_p4(source)
    assert full.quick is None
    assert full.library.exists()
    again = compile_p4(source, quick=True)
    assert (again.library, again.quick) == (full.library, None)
    with Switch(full) as switch:
        assert make_full_build(switch) is None


def test_a_damaged_quick_build_is_made_anew(source: Path) -> None:
    made = quick(source).quick
    assert made
    made.write_bytes(b"nonsense")
    with Switch(quick(source)) as switch:
        assert ports(switch, 1) == [0]


def test_programs_with_c_of_the_users_have_no_quick_build(source: Path) -> None:
    """A change of builds would lose what its static variables hold."""
    externs = source.with_suffix(".c")
    externs.write_text("")
    assert compile_p4(source, externs=externs, quick=True).quick is None


def test_a_switch_that_is_closed_meanwhile_stays_closed(source: Path) -> None:
    switch = Switch(quick(source))
    switch.close()
    thread = make_full_build(switch)
    assert thread
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(DataPlaneError, match="closed"):
        switch.inject(1, b"x")


def test_a_process_that_ends_ends_its_compilers(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from v1model.backend import building
building.compiler = lambda: sys.argv[1]
building.compile_file(Path("x.c"), Path("x.o"), ())
input()
"""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\nexec 3>{alive}\nsleep 600 &\nwait\n")
    compiler.chmod(0o755)
    process = subprocess.Popen([sys.executable, "-c", code, compiler], stdin=subprocess.PIPE)
    with alive.open("rb") as held:  # by the compiler and its child
        process.communicate(b"\n", timeout=60)
        assert held.read() == b""


def test_a_pipeline_gets_its_full_build_when_it_is_committed(source: Path) -> None:
    engine = EmbeddedEngine({}, None)
    config = DeviceConfig(str(source), preprocess(source)).encode()
    verified, committed = engine.load(config), engine.load(config)
    engine.discard(verified)
    assert committed.compiled.quick
    engine.connect(committed)
    deadline = time.monotonic() + 60
    while committed.compiled.quick and time.monotonic() < deadline:
        time.sleep(0.01)
    assert committed.compiled.quick is None
    engine.discard(committed)
    engine.close()


def test_a_pipeline_that_finds_no_room_is_refused_with_the_reason(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = source.with_suffix(".taken")
    taken.write_text("a file where the cache should be")
    engine = EmbeddedEngine({}, None)
    monkeypatch.setenv("WEIR_CACHE", str(taken))
    with pytest.raises(DataPlaneError, match=r"can't keep what it compiles: .*File exists") as refused:
        engine.load(DeviceConfig(str(source), preprocess(source)).encode())
    assert refused.value.code == "FAILED_PRECONDITION"
    engine.close()


def test_a_full_build_that_fails_leaves_the_switch_as_it_is(
    source: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CompileError("no room")

    with Switch(quick(source)) as switch:
        monkeypatch.setattr(full_build, "sandboxed_finish", fail)
        thread = make_full_build(switch)
        assert thread
        thread.join(60)
        assert ports(switch, 1) == [0]
        assert "no room" in caplog.text


def test_a_process_can_end_while_a_build_is_under_way(source: Path) -> None:
    """It does not wait for the C compiler: whoever waits for that is a daemon."""
    before = set(threading.enumerate())
    with Switch(quick(source)) as switch:
        thread = make_full_build(switch)
        assert thread
        while thread.is_alive():
            assert all(other.daemon for other in threading.enumerate() if other not in before)
        thread.join()
