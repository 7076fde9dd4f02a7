"""The switch and the compiler as processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Barrier, Thread

import pytest
from google.protobuf import json_format, text_format

from tests.v1model.p4runtime.http2 import HalfOpen
from v1model import p4c
from v1model.protos.p4.config.v1 import p4info_pb2

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("p4runtime") / "control.p4"
GROWS = """
#include <core.p4>
#include <v1model.p4>
header wide_t { bit<2048> zeros; }
struct headers_t { wide_t wide; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    apply { sm.egress_spec = sm.ingress_port; h.wide.setValid(); h.wide.zeros = 0; }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
ANY_PORT = ["--", "--grpc-server-addr", "127.0.0.1:0"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="interfaces need root")


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "v1model", *map(str, arguments)]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )


def compile_here(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """The compile command in this process."""
    words = list(map(str, arguments))
    try:
        code = p4c.main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    return subprocess.CompletedProcess(words, code, said.out, said.err)


def running_switch(*arguments: str | Path) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """(process, address) of a switch that is ready."""
    return running_switch_of("switch", *arguments)


@contextmanager
def running_switch_of(form: str, *arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The same, started as `python -m v1model switch ...`, or without the word."""
    words = ["switch"] if form == "switch" else []
    process = subprocess.Popen(
        command(*words, *arguments), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        first = process.stdout.readline()
        assert first.startswith("listening on "), process.communicate()
        yield process, first.split()[-1]
    finally:
        process.kill()
        process.communicate()


@contextmanager
def interface() -> Iterator[str]:
    name = f"weirt{os.getpid()}"
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"], check=True)
    try:
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(P4Info, device config) as the compile command writes them."""
    directory = tmp_path_factory.mktemp("artifacts")
    p4info, config = directory / "p4info.txtpb", directory / "config.json"
    done = run("compile", PROGRAM, "--p4info", p4info, "--config", config)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return p4info, config


def test_compile_says_where_a_program_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "wrong.p4"
    program.write_text('#include "shared.p4"\nconst bit<VALUE> x = unknown;\n')
    include = tmp_path / "include"
    include.mkdir()
    (include / "shared.p4").write_text("const bit<8> y = 1;\n")
    done = compile_here(capsys, program, "-I", include, "-D", "VALUE=8")
    assert done.returncode == 1
    assert f"{program}:2:" in done.stderr
    assert "Traceback" not in done.stderr


def test_compile_of_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    done = compile_here(capsys, "nowhere.p4")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nowhere.p4: no such file" in done.stderr


def test_unknown_subcommands_print_the_usage() -> None:
    done = run("fly")
    assert (done.returncode, done.stdout) == (2, "")
    assert "python -m v1model compile" in done.stderr


def test_sigterm_ends_it_cleanly_and_at_once() -> None:
    with running_switch("--no-p4", *ANY_PORT) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert process.communicate() == ("", "")


def test_sigterm_ends_it_whatever_keeps_it() -> None:
    code = """
import time, v1model.p4runtime.server as server
server.P4RuntimeServer.stop = lambda self: time.sleep(600)
from v1model.cli import main
raise SystemExit(main(["--no-p4", "--", "--grpc-server-addr", "127.0.0.1:0"]))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        assert process.stdout.readline().startswith(b"listening on")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def test_sigterm_ends_it_in_the_middle_of_a_flood() -> None:
    with running_switch("--no-p4", *ANY_PORT) as (process, address):
        flooding = Barrier(5)

        def flood() -> None:
            attacker = HalfOpen(address)
            attacker.begin_and_cancel("Write", 100)
            flooding.wait()
            with suppress(OSError):
                while True:
                    attacker.begin_and_cancel("Write", 100)
            attacker.close()

        attackers = [Thread(target=flood) for _ in range(4)]
        for attacker in attackers:
            attacker.start()
        flooding.wait()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        for attacker in attackers:
            attacker.join()


def test_an_address_that_others_reach_is_said_once() -> None:
    with running_switch("--no-p4", "--", "--grpc-server-addr", "0.0.0.0:0") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        _, said = process.communicate()
    assert said.startswith("weir-switch: whoever reaches 0.0.0.0:0 may do everything to this switch")
    assert said.count("\n") == 1


@pytest.mark.parametrize("form", ["source", "config"])
def test_a_program_on_the_command_line_is_the_pipeline(artifacts: tuple[Path, Path], form: str) -> None:
    from tests.v1model.p4runtime.controller import Controller

    p4info, config = artifacts
    with running_switch(PROGRAM if form == "source" else config, *ANY_PORT) as (_, address):
        client = Controller(address, None)  # type: ignore[arg-type]  # the switch has it
        try:
            read = client.client.get_p4info()
            assert read.tables[0].preamble.name == "FlowIngress.index"
            assert text_format.MessageToString(read) == p4info.read_text()
        finally:
            client.close()


def test_a_busy_port_is_one_line() -> None:
    with running_switch("--no-p4", *ANY_PORT) as (_, address):
        done = run("switch", "--no-p4", "--", "--grpc-server-addr", address)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"weir-switch: can't listen on {address}: the port is in use")
        assert done.stderr.count("\n") == 1


@needs_root
def test_an_interface_that_is_not_there_is_one_line() -> None:
    done = run("switch", "--no-p4", "-i", "1@nowhere0", *ANY_PORT)
    assert done.returncode == 1
    assert done.stderr == "weir-switch: port 1 on nowhere0: there is no such interface\n"


@needs_root
@pytest.mark.parametrize("program", ["--no-p4", PROGRAM], ids=["reserved", "attached"])
def test_two_switches_on_one_interface(program: str | Path) -> None:
    with interface() as name, running_switch(program, "-i", f"1@{name}", *ANY_PORT):
        done = run("switch", "--no-p4", "-i", f"3@{name}", *ANY_PORT)
        assert done.returncode == 1
        assert f"port 3 on {name}: another switch has this interface" in done.stderr
        assert done.stderr.count("\n") == 1


@needs_root
def test_an_interface_that_vanishes_is_reported_and_survived() -> None:
    with interface() as name, running_switch("-i", f"1@{name}", PROGRAM, *ANY_PORT) as (process, _):
        subprocess.run(["ip", "link", "del", name], check=True)
        assert process.stderr
        assert process.stderr.readline().startswith("weir-switch: port 1 is down: ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_compile_takes_p4c_s_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says which of them do nothing."""
    build = tmp_path / "build"
    files = f"{build}/prog.p4info.txtpb,{build}/prog.p4info.bin,{build}/prog.p4info.json"
    arguments = ["--p4v", "16", "--target", "bmv2", "--arch", "v1model", "--p4runtime-files", files]
    more: list[str | Path] = ["--Wdisable=unused", "--emit-externs", "-o", build / "prog.json"]
    done = compile_here(capsys, *arguments, *more, PROGRAM)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "weir-p4c: --emit-externs makes no difference here\n"
    text = text_format.Parse((build / "prog.p4info.txtpb").read_text(), p4info_pb2.P4Info())
    assert p4info_pb2.P4Info.FromString((build / "prog.p4info.bin").read_bytes()) == text
    assert json_format.Parse((build / "prog.p4info.json").read_text(), p4info_pb2.P4Info()) == text
    assert compile_here(capsys, "--p4runtime-files", "x.yaml", PROGRAM).returncode == 2
    assert compile_here(capsys, "--p4v", "14", PROGRAM).returncode == 2
    assert "parser" in compile_here(capsys, "-E", PROGRAM).stdout


@needs_root
def test_a_program_s_name_is_enough() -> None:
    with interface() as name, running_switch_of("module", PROGRAM, "-i", f"1@{name}", *ANY_PORT):
        pass


@needs_root
def test_a_frame_that_is_too_long_is_logged_and_shown(tmp_path: Path) -> None:
    """A frame that grows beyond the MTU of its interface: log, trace and `show_ports` say so."""
    trace, program = tmp_path / "trace.jsonl", tmp_path / "grows.p4"
    program.write_text(GROWS)
    arguments: list[str | Path] = [program, "--trace", trace, "--trace-json"]
    with interface() as name, running_switch("-i", f"1@{name}", *arguments, *ANY_PORT) as (process, address):
        subprocess.run(["ip", "link", "set", f"{name}p", "up"], check=True)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((f"{name}p", 0))
            sender.send(bytes(1400))
        assert process.stderr
        expected = f"weir-switch: port 1 ({name}): dropped 1 packet: to be sent, but longer than"
        assert process.stderr.readline().startswith(expected)
        shown = subprocess.run(
            [sys.executable, "-m", "v1model.remote.cli", "--address", address, "-c", "show_ports"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        assert shown[0].startswith(f"1: {name}, ")
        assert "1 beyond_mtu" in shown[0]
        wait_for(lambda: '"cause": "beyond_mtu", "port": 1' in trace.read_text())


@needs_root
def test_pcap_and_trace_of_a_running_switch(tmp_path: Path) -> None:
    """What the interface hands over is in its pcap file; every packet's steps are JSON lines."""
    trace = tmp_path / "trace.jsonl"
    options: list[str | Path] = ["--pcap", tmp_path / "pcap", "--trace", trace, "--trace-json"]
    with interface() as name, running_switch(PROGRAM, "-i", f"1@{name}", *options, *ANY_PORT):
        subprocess.run(["ip", "link", "set", f"{name}p", "up"], check=True)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((f"{name}p", 0))
            sender.send(bytes(range(60)))
        wait_for(lambda: bytes(range(60)) in (tmp_path / "pcap" / f"{name}_in.pcap").read_bytes())
        wait_for(lambda: bytes(range(60)).hex() in trace.read_text() and '"control"' in trace.read_text())
    received = [json.loads(line) for line in trace.read_text().splitlines()]
    assert {event["kind"] for event in received} >= {"received", "state", "control"}
    assert (tmp_path / "pcap" / f"{name}_out.pcap").is_file()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
