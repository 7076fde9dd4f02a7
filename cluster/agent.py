"""The agent of a server: `python -m cluster.agent`, at the other end of an SSH connection.

At the run's request it builds a part of a fabric, starts processes in its hosts and switches, and reports
measurements. It removes everything and ends when the connection ends, or when the run is silent for
SILENCE_S.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from cluster.agent_processes import AgentProcesses
from cluster.fabric_text import from_message
from cluster.messages import CHUNK_BYTES, PYTHON, Message, MessageError, Outgoing, incoming, to_bytes, to_text
from commands.cores import usable_cores
from commands.errors import ExperimentError
from commands.value_size import build_core
from emulator.machine import CpuWatch, cpu_time
from emulator.result import ROOT
from topologies.engines import make_engine
from topologies.errors import EngineError, TopologyError
from topologies.machine_check import check_machine, complete_path
from topologies.network import Network
from topologies.part import Part, Tunnel

SILENCE_S: Final = 30.0
"""Seconds without a message after which the run counts as gone; it sends one every few seconds."""
LOCK: Final = ".weir-lock"
_REFUSED = (TopologyError, EngineError, ExperimentError, OSError, KeyError, ValueError, TypeError)


class Agent:
    """Handler of the run's requests. Use as a context manager: leaving it removes all that was made."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._stack = contextlib.ExitStack()
        self._network: Network | None = None
        self._watching = contextlib.ExitStack()
        self._watch: CpuWatch | None = None

    def __enter__(self) -> Agent:
        self._processes = AgentProcesses(self._outgoing)
        self._stack.callback(self._processes.close)
        self._stack.enter_context(self._watching)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def answer(self, message: Message) -> None:
        """Do what a message asks; send the result if the message has a number."""
        do: Callable[..., Any] | None = getattr(self, f"do_{message.get('do')}", None)
        number = message.get("number")
        given = {name: value for name, value in message.items() if name not in ("do", "number")}
        try:
            if do is None:
                raise ValueError(f"no such request: {message.get('do')!r}")
            result = do(**given)
        except _REFUSED as error:
            if number is not None:
                reason = str(error) if not isinstance(error, KeyError) else f"there is no {error}"
                self._outgoing.send({"number": number, "refused": reason})
            return
        if number is not None:
            self._outgoing.send({"number": number, "result": result})

    def do_hello(self) -> dict[str, Any]:
        """Compile the hosts' core if it is missing, and return the usable cores.

        Raises TopologyError if networks can't be built on this server.
        """
        check_machine()
        build_core()
        return {"cores": usable_cores()}

    def do_alive(self) -> None:
        """Do nothing: the message itself shows that the run is still there."""

    def do_clock(self) -> dict[str, float]:
        """Return the times of this server's monotonic and wall clock."""
        return {"monotonic": time.monotonic(), "wall": time.time()}

    def do_open(
        self,
        fabric: dict[str, Any],
        vertices: list[str],
        tunnels: list[dict[str, Any]],
        engine: str,
        delay_ms: float,
        queue_packets: int | None,
        mtu_bytes: int,
    ) -> str:
        """Build a part of a fabric; returns the folder for its files."""
        part = Part(frozenset(vertices), tuple(Tunnel(**one) for one in tunnels))
        network = Network(
            from_message(fabric), make_engine(engine), delay_ms, False, queue_packets, mtu_bytes, part
        )
        self._network = self._stack.enter_context(network)
        return str(network.directory)

    def do_compile(self, program: str, defines: dict[str, int]) -> None:
        """Compile a program of the checkout, so that the switches here find it compiled."""
        self._there.compile(ROOT / program, defines)

    def do_start(
        self, process: int, host: str | None, command: list[str], stdin: bool, out: bool, err: bool
    ) -> int:
        """Start a process in a host or switch, or in none; returns its process id here."""
        words = [sys.executable if word == PYTHON else word for word in command]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        streams = {
            "stdin": pipe if stdin else null,
            "stdout": pipe if out else null,
            "stderr": pipe if err else null,
        }
        if host is None:
            started: Any = self._there.popen_here(words, **streams)
        else:
            started = self._there.popen(host, words, **streams)
        self._processes.add(process, started)
        return int(started.pid)

    def do_write(self, process: int, text: str) -> None:
        """Write to the stdin of a process."""
        self._processes.write(process, text)

    def do_close_stdin(self, process: int) -> None:
        """Close the stdin of a process."""
        self._processes.close_stdin(process)

    def do_signal(self, process: int, signal: int) -> None:
        """Send a process a signal."""
        self._processes.signal(process, signal)

    def do_put(self, path: str, data: str, begin: bool) -> None:
        """Write a part of a file below the network's folder."""
        place = self._below(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb" if begin else "ab") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(to_bytes(data))

    def do_get(self, path: str, offset: int) -> str:
        """Return a part of a file below the network's folder."""
        with self._below(path).open("rb") as file:
            file.seek(offset)
            return to_text(file.read(CHUNK_BYTES))

    def do_command(self, name: str, command: str) -> str:
        """Return the output of a shell command in a host or switch."""
        return self._there.ask(name, command)

    def do_accepts(self, path: str) -> bool:
        """Return whether a process serves the socket at a path below the network's folder."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as tried:
            tried.connect(str(self._below(path)))
            return True
        return False

    def do_remove(self, path: str) -> None:
        """Remove a file below the network's folder."""
        self._below(path).unlink(missing_ok=True)

    def do_link_bytes(self, switches: dict[str, int]) -> dict[str, tuple[int, int]]:
        """Return the bytes over each link of some switches, given by the numbers of their processes."""
        found: dict[str, tuple[int, int]] = {}
        for switch, number in switches.items():
            with contextlib.suppress(KeyError):
                found |= self._there.link_bytes_of(switch, self._processes.pid(number))
        return found

    def do_link_drops(self) -> int:
        """Return how many packets the queues of this part dropped."""
        return self._there.link_drops()

    def do_transmitted_bytes(self, host: str) -> int:
        """Return the bytes that a host has sent."""
        return self._there.transmitted_bytes(host)

    def do_cpu_time(self, processes: list[int]) -> dict[str, float]:
        """Return the CPU time that some processes have used."""
        pids = []
        for number in processes:
            with contextlib.suppress(KeyError):
                pids.append(self._processes.pid(number))
        return asdict(cpu_time(pids))

    def do_watch(self, switches: list[int]) -> None:
        """Begin to sample the CPU and the threads of switches, given by the numbers of their processes."""
        watch = CpuWatch(self._processes.pid(number) for number in switches)
        self._watching.close()
        self._watch = self._watching.enter_context(watch)

    def do_watched(self) -> dict[str, float]:
        """End sampling; returns the CPU use since it began."""
        if self._watch is None:
            raise ValueError("nothing is watched")
        self._watching.close()
        watch, self._watch = self._watch, None
        return asdict(watch.use)

    def do_run(self, command: list[str], timeout_s: float) -> str:
        """Run a program to its end; returns its stdout. Raises ValueError if it fails or takes too long."""
        words = [sys.executable if word == PYTHON else word for word in command]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{' '.join(command)} took longer than {timeout_s:g} s") from None
        if done.returncode:
            raise ValueError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
        return done.stdout

    @property
    def _there(self) -> Network:
        if self._network is None:
            raise ValueError("no network is open")
        return self._network

    def _below(self, path: str) -> Path:
        """Return the path of a place below the network's folder; raises ValueError for one outside."""
        place = (self._there.directory / path).resolve()
        if not place.is_relative_to(self._there.directory.resolve()):
            raise ValueError(f"{path} is not below {self._there.directory}")
        return place


def main() -> int:
    """Answer until the run ends; returns the exit code."""
    outgoing = Outgoing(_own_stdout())
    silence_timeout = _SilenceTimeout()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    complete_path()
    with (
        contextlib.suppress(MessageError, OSError, ValueError, _Stopped),
        _checkout_in_use(),
        silence_timeout,
        Agent(outgoing) as agent,
    ):
        for message in incoming(sys.stdin.buffer):
            with silence_timeout.busy():
                agent.answer(message)
    return 0


class _Stopped(BaseException):
    """Raised in the agent by a signal that asks it to end."""


def _stop(*_: object) -> None:
    raise _Stopped


class _SilenceTimeout:
    """Watchdog that ends this process with a signal to its main thread if the run is silent for too long."""

    def __init__(self) -> None:
        self._last_s, self._is_busy = time.monotonic(), False
        self._done = threading.Event()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Suspend the watchdog while a request is handled, because later messages wait meanwhile."""
        self._is_busy = True
        yield
        self._last_s = time.monotonic()
        self._is_busy = False

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._done.set()

    def _watch(self) -> None:
        while not self._done.wait(1.0):
            if not self._is_busy and time.monotonic() - self._last_s > SILENCE_S:
                print(f"the run said nothing for {SILENCE_S:g} s", file=sys.stderr, flush=True)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                return


def _own_stdout() -> IO[bytes]:
    """Return the connection's stream, and redirect what libraries print to stderr."""
    connection = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return connection


@contextlib.contextmanager
def _checkout_in_use() -> Iterator[None]:
    """Hold a lock that keeps others from replacing this checkout."""
    with (Path(__file__).resolve().parents[1] / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


if __name__ == "__main__":
    sys.exit(main())
