"""Veth cables between the load generator and an engine, each end in a network namespace of its own.

The namespaces have no name: each lives as long as a process that sleeps in it. The kernel ends that process
when this one ends, for whatever reason. The interfaces and all processes that were started there go with it.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from typing import Any

from commands.precedence import comes_first, put_session_first
from experiments.bench.switch.errors import BenchError
from hostlib.protocol.wire import MTU_BYTES
from topologies.process import end_process

_GUARD = ("setpriv", "--pdeathsig", "KILL", "--")
_HOLD = ("unshare", "--net", "--", "sh", "-c", "echo ready && exec sleep infinity")
_QUIET = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"  # no router solicitations


class Namespace:
    """Unnamed network namespace. Use as a context manager."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Namespace:
        # A session of its own: Ctrl-C at the terminal reaches this process only, which then ends the holder.
        holder = subprocess.Popen(
            (*_GUARD, *_HOLD), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._stack.callback(end_process, holder)
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline().strip() != b"ready":
            output = holder.stderr.read().decode().strip()
            self._stack.close()
            raise BenchError(f"no network namespace: {output}")
        self.pid = holder.pid  # unshare and sh both become the next program
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def _enter(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net", "--")

    def popen(self, command: Sequence[str], cpus: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a process in the namespace, on CPUs as taskset writes them.

        It ends with the namespace. If this process takes precedence over other programs, so does it.
        """
        where = (*self._enter, "taskset", "-c", cpus)
        process = subprocess.Popen((*where, *_GUARD, *command), start_new_session=True, **options)
        self._stack.callback(end_process, process)
        if comes_first():
            put_session_first(process.pid)
        return process

    def run(self, *command: str) -> None:
        """Run a command in the namespace; if it fails, raises BenchError with its output."""
        run_tool(*self._enter, *command)


def run_tool(*command: str) -> None:
    """Run a command to its end; if it fails, raises BenchError with its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


class Cables:
    """Veth pairs with the generator's ends in one namespace and the engine's in another.

    Use as a context manager.
    """

    def __init__(self, count: int) -> None:
        self.generator_ends = tuple(f"gen{number}" for number in range(count))
        self.engine_ends = tuple(f"eng{number}" for number in range(count))
        self.generator, self.engine = Namespace(), Namespace()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Cables:
        with contextlib.ExitStack() as stack:
            for namespace in (self.generator, self.engine):
                stack.enter_context(namespace)
                namespace.run("sysctl", "-qw", *_QUIET.split())
            for ours, theirs in zip(self.generator_ends, self.engine_ends, strict=True):
                self._connect(ours, theirs)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connect(self, ours: str, theirs: str) -> None:
        here, there = str(self.generator.pid), str(self.engine.pid)
        peer = ("peer", "name", theirs, "netns", there)
        run_tool("ip", "link", "add", "name", ours, "netns", here, "type", "veth", *peer)
        for namespace, name in ((self.generator, ours), (self.engine, theirs)):
            namespace.run("ip", "link", "set", name, "mtu", str(MTU_BYTES), "up", "arp", "off")
