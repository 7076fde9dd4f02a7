"""P4Testgen's tests on the embedded switch: of conformance programs where p4testgen is on PATH. Else a
stand-in writes files as its STF back end does (targets/bmv2/test_backend/stf.cpp of P4Testgen)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.experiments.summaries import assert_described
from v1model import testgen

CONFORMANCE = Path(__file__).parents[1] / "conformance"
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    action to(bit<9> port, bit<8> b) { sm.egress_spec = port; h.h.b = b; }
    action drop() { mark_to_drop(sm); }
    table route { key = { h.h.a: lpm @name("a"); } actions = { to; drop; } default_action = drop(); }
    apply { route.apply(); }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
# What stf.cpp's template makes of a hit, and of a default action if another frame were to come out.
TESTS = {
    "1": """# p4testgen seed: 1
# Date generated: 2026-01-01-00:00:00.000
# Current node coverage: 0.5
# Traces
# [Parser] Extract: hdr.h "a" { x }

# Table I.route
add "I.route" 1 "a":0b0101**** "I.to"("port":0x0002,"b":0x2A)


packet 0 5100EE
expect 2 512AEE$

""",
    "2": """# p4testgen seed: 1
# Table I.route
setdefault "I.route" "I.to"("port":0x0003,"b":0x01)


packet 0 0000
expect 3 0002$

""",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "programs" / "route.p4"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    return path


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, tests: dict[str, str]) -> None:
    """Puts a `p4testgen` on PATH that writes these tests to --out-dir, or fails if there are none."""
    for name, text in tests.items():
        (folder / f"made_{name}").write_text(text)
    script = folder / testgen.GENERATOR
    script.write_text(
        "#!/bin/sh\n"
        "while [ $# -gt 0 ]; do case $1 in --out-dir) out=$2;; *.p4) program=$1;; esac; shift; done\n"
        f"for made in {folder}/made_*; do [ -e $made ] || {{ echo unsupported >&2; exit 1; }}\n"
        "cp $made $out/$(basename $program .p4)_${made##*_}.stf; done\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def run(program: Path, out: Path) -> int:
    return testgen.main([str(program.parent), "--out", str(out), "--jobs", "1"])


def test_each_test_is_run_and_counted(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, TESTS)
    assert run(program, tmp_path / "out") == testgen.FAILURE
    assert_described("testgen", tmp_path / "out" / "summary.json")
    tests = json.loads((tmp_path / "out" / "summary.json").read_text())["tests"]
    results = {name: test["result"] for name, test in tests.items()}
    assert results == {"route_1": "passed", "route_2": "failed"}
    assert "0001" in tests["route_2"]["reason"]
    assert "no tests for 0 of 1 programs" in capsys.readouterr().out


def test_a_program_without_tests_says_why(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, {})
    assert run(program, tmp_path / "out") == testgen.OK
    assert "exit code 1: unsupported" in capsys.readouterr().out


def test_without_p4testgen(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(program, tmp_path / "out") == testgen.USAGE
    assert "p4testgen is not on PATH" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(testgen.GENERATOR) is None, reason="p4testgen is not on PATH")
def test_the_conformance_programs(tmp_path: Path) -> None:
    assert testgen.main([str(CONFORMANCE), "--out", str(tmp_path)]) == testgen.OK
