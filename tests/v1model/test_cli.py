"""The switch and the compiler as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("p4runtime") / "control.p4"
ANY_PORT = ["--", "--grpc-server-addr", "127.0.0.1:0"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="interfaces need root")


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "v1model", *map(str, arguments)]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )


@contextmanager
def running_switch(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, address) of a switch that is ready."""
    process = subprocess.Popen(
        command("switch", *arguments), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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


def test_compile_says_where_a_program_is_wrong(tmp_path: Path) -> None:
    program = tmp_path / "wrong.p4"
    program.write_text('#include "shared.p4"\nconst bit<VALUE> x = unknown;\n')
    include = tmp_path / "include"
    include.mkdir()
    (include / "shared.p4").write_text("const bit<8> y = 1;\n")
    done = run("compile", program, "-I", include, "-D", "VALUE=8")
    assert done.returncode == 1
    assert f"{program}:2:" in done.stderr
    assert "Traceback" not in done.stderr


def test_compile_of_a_file_that_is_not_there() -> None:
    done = run("compile", "nowhere.p4")
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


@pytest.mark.parametrize("form", ["source", "config"])
def test_a_program_on_the_command_line_is_the_pipeline(artifacts: tuple[Path, Path], form: str) -> None:
    from tests.v1model.p4runtime.controller import Controller

    p4info, config = artifacts
    with running_switch(PROGRAM if form == "source" else config, *ANY_PORT) as (_, address):
        client = Controller(address, None)  # type: ignore[arg-type]  # the switch has it
        try:
            read = client.client.get_p4info()
            assert read.tables[0].preamble.name == "FlowIngress.index"
            assert str(read) == p4info.read_text()
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
