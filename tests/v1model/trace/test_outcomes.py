"""All outcomes of a packet: each member of each group that chooses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.v1model.kept_programs import kept_program
from v1model.backend import Tracing
from v1model.compile import compile_p4
from v1model.dataplane import DataPlaneError, Group, Member, Replica, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.stf.tracing import main
from v1model.switch import Switch
from v1model.trace.outcomes import Choice, Outcome, outcomes

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> hashed; }
struct headers_t { h_t h; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    register<bit<8>>(1) seen;
    action to(bit<9> port) { sm.egress_spec = port; }
    action flood(bit<16> group) { sm.mcast_grp = group; }
    action mark(bit<8> kind) { h.h.kind = kind; }
    action_selector(HashAlgorithm.crc16, 1024, 16) paths;
    action_selector(HashAlgorithm.crc16, 1024, 16) marks;
    table route {
        key = { h.h.kind: exact; h.h.hashed: selector; }
        actions = { to; flood; }
        implementation = paths;
    }
    table colour {
        key = { h.h.kind: exact; h.h.hashed: selector; }
        actions = { mark; }
        implementation = marks;
    }
    apply {
        bit<8> before;
        seen.read(before, 0);
        seen.write(0, before + 1);
        if (route.apply().hit) { colour.apply(); }
    }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def program() -> Path:
    return kept_program(PROGRAM)


@pytest.fixture
def switch(program: Path) -> Iterator[Switch]:
    """Packets of kind 1 and 2 go to 3 ports or to the multicast group; those of 1 are marked 7 or 8, too."""
    with Switch(compile_p4(program, tracing=Tracing.STEPS, quick=True)) as switch:
        for member, port in enumerate((11, 12, 13), start=1):
            switch.insert_member("I.paths", Member(member, ActionCall("I.to", (port,))))
        switch.insert_member("I.paths", Member(4, ActionCall("I.flood", (9,))))
        switch.set_multicast_group(9, [Replica(21, 0), Replica(22, 0)])
        switch.insert_group("I.paths", Group(1, ((1, 1), (2, 5), (3, 1), (4, 1))))
        for member, kind in enumerate((7, 8), start=1):
            switch.insert_member("I.marks", Member(member, ActionCall("I.mark", (kind,))))
        switch.insert_group("I.marks", Group(5, ((1, 1), (2, 1))))
        for kind in (1, 2):
            switch.insert(TableEntry("I.route", (KeyMatch(kind),), None, group=1))
        switch.insert(TableEntry("I.colour", (KeyMatch(1),), None, group=5))
        yield switch


def sent(outcome: Outcome) -> set[tuple[int, bytes]]:
    return {(output.port, output.data) for output in outcome.outputs}


def test_each_member_and_all_copies_of_each(switch: Switch) -> None:
    found = list(outcomes(switch, 3, b"\x02\x05!"))
    assert [outcome.choices for outcome in found] == [(Choice("I.paths", 1, n),) for n in (1, 2, 3, 4)]
    frame = b"\x02\x05!"
    assert [sent(outcome) for outcome in found] == [
        {(11, frame)},
        {(12, frame)},
        {(13, frame)},
        {(21, frame), (22, frame)},
    ]
    last = [event.values["port"] for event in found[-1].events if event.kind == "sent"]
    assert sorted(map(str, last)) == ["21", "22"]


def test_groups_behind_one_another(switch: Switch) -> None:
    found = list(outcomes(switch, 3, b"\x01\x05"))
    assert len(found) == 4 * 2
    assert sent(found[1]) == {(11, b"\x08\x05")}
    assert found[1].choices == (Choice("I.paths", 1, 1), Choice("I.marks", 5, 2))


def test_the_switch_sees_nothing_of_it(switch: Switch) -> None:
    before = switch.inject(3, b"\x02\x05")
    list(outcomes(switch, 3, b"\x02\x05"))
    assert switch.register("I.seen", 0) == 1
    assert switch.inject(3, b"\x02\x05") == before
    assert [group.members for group in switch.groups("I.paths")] == [((1, 1), (2, 5), (3, 1), (4, 1))]


def test_without_a_group_there_is_one(switch: Switch) -> None:
    (only,) = outcomes(switch, 3, b"\x63\x05")
    assert only.choices == ()
    assert [event.kind for event in only.events][-1] == "sent"


def test_too_many_are_not_all_gone_through(switch: Switch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("v1model.trace.outcomes.MAX_OUTCOMES", 3)
    found = outcomes(switch, 3, b"\x01\x05")
    assert len({next(found).choices for _ in range(3)}) == 3
    with pytest.raises(DataPlaneError, match="more than 3 outcomes"):
        next(found)


def test_on_the_command_line(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = program.with_suffix(".stf")
    script.write_text("packet 3 63 05\nexpect 0\n")
    assert main([str(program), str(script), "--outcomes"]) == 0
    assert capsys.readouterr().out.startswith("outcome 1: no group chooses\n1.1 ")
    assert main([str(program), str(script), "--outcomes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["outcome"] == 1


def test_a_mistake_in_an_stf_file_is_shown_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.stf").write_text("pakcet 1 0102\n")
    assert main([str(tmp_path / "p.p4"), str(tmp_path / "p.stf")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'p.stf'}: line 1: unknown statement 'pakcet'\n"


def test_a_reader_that_has_enough_ends_the_command_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "p.p4").write_text(PROGRAM)
    (tmp_path / "p.stf").write_text("packet 1 0102\n" * 2)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "v1model", "trace", str(tmp_path / "p.p4"), str(tmp_path / "p.stf")]
    ended = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")
