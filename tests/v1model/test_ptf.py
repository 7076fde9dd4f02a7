"""PTF, p4lang's packet test framework, against a running switch: where PTF_PYTHON names an interpreter that
has it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.v1model.test_cli import ANY_PORT, needs_root, running_switch

TESTS = Path(__file__).with_name("ptf")
TIMEOUT_S = 240
pytestmark = [
    pytest.mark.root,
    needs_root,
    pytest.mark.skipif(
        "PTF_PYTHON" not in os.environ,
        reason="PTF needs an environment of its own: python3 -m venv P; P/bin/pip install ptf==0.12.0; "
        "PTF_PYTHON=P/bin/python",
    ),
]


@pytest.fixture
def links() -> Iterator[dict[int, tuple[str, str]]]:
    """Of each port (the switch's end, PTF's end). IPv6 is off, so that the hosts send nothing unasked."""
    ends = {port: (f"weirs{port}-{os.getpid()}", f"weirt{port}-{os.getpid()}") for port in (1, 2)}
    with ExitStack() as stack:
        for ours, theirs in ends.values():
            subprocess.run(["ip", "link", "add", ours, "type", "veth", "peer", "name", theirs], check=True)
            stack.callback(subprocess.run, ["ip", "link", "del", ours], check=False)
            for end in (ours, theirs):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                subprocess.run(["ip", "link", "set", end, "up"], check=True)
        yield ends


def run_ptf(
    links: dict[int, tuple[str, str]], address: str, directory: Path, *names: str
) -> subprocess.CompletedProcess[str]:
    python = Path(os.environ["PTF_PYTHON"])
    interfaces = [word for port, (_, end) in links.items() for word in ("-i", f"{port}@{end}")]
    cli = f"cli='{sys.executable} -m v1model cli --address {address}'"
    ptf: list[str | Path] = [python, python.with_name("ptf"), "--test-dir", TESTS]
    command = [*ptf, *interfaces, "-t", cli, *names]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_ptf_tests_run_against_the_switch(links: dict[int, tuple[str, str]], tmp_path: Path) -> None:
    ports = [word for port, (end, _) in links.items() for word in ("-i", f"{port}@{end}")]
    with running_switch(*ports, TESTS / "router.p4", *ANY_PORT) as (_, address):
        done = run_ptf(links, address, tmp_path, "router")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 4 tests" in done.stdout + done.stderr


def test_ptf_fails_where_the_switch_does_otherwise(links: dict[int, tuple[str, str]], tmp_path: Path) -> None:
    """The same tests see a router that leaves the TTL alone."""
    source = (TESTS / "router.p4").read_text()
    changed = source.replace("hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", "")
    assert changed != source
    (tmp_path / "router.p4").write_text(changed)
    ports = [word for port, (end, _) in links.items() for word in ("-i", f"{port}@{end}")]
    with running_switch(*ports, tmp_path / "router.p4", *ANY_PORT) as (_, address):
        done = run_ptf(links, address, tmp_path, "router.PacketsFollowTheirRoute")
    assert done.returncode == 1
    assert "Expected packet was not received" in done.stdout + done.stderr
