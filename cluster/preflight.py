"""Checks of all servers before a run starts anything, and copying of this checkout to them."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from cluster import probe
from cluster.checkout import copy, digest_here, files_here, set_up
from cluster.clocks import Offset, estimate
from cluster.errors import ServerError
from cluster.refusals import Found, refusal, twice, unreachable
from cluster.servers import FOLDER, Server
from cluster.ssh import CONNECT_TIMEOUT_S, check_client, on_server

CLOCK_QUESTIONS: Final = 5
PROBE_TIMEOUT_S: Final = CONNECT_TIMEOUT_S + 30.0
ENDS_WITHIN_S: Final = 2.0
MAX_ANSWER_BYTES: Final = 1 << 16

This = TypeVar("This")
Result = TypeVar("Result")


def inspect_servers(servers: Sequence[Server], say: Callable[[str], None] = lambda text: None) -> list[Found]:
    """Probe all servers at once, copy the checkout to those that have another, and set it up.

    `say` gets a sentence before each step that takes long. Raises ServerError with a sentence for each server
    that can't be used.
    """
    check_client()
    found, refused = _each(servers, _probed)
    refused += [text for one in found if (text := refusal(one, digest_here())) is not None]
    if not refused and (text := twice(found)) is not None:
        refused.append(text)
    if refused:
        raise ServerError("\n".join(refused))

    def prepare(one: Found) -> None:
        if one.server.folder is not None:
            return
        if one.digest != digest_here():
            say(f"server {one.server.name}: copying this checkout to {one.folder}")
            copy(one.server, one.folder)
        if not one.has_environment:
            say(f"server {one.server.name}: setting up {one.folder}, which takes some minutes once")
        set_up(one.server, one.folder)

    _, refused = _each(found, prepare)
    if refused:
        raise ServerError("\n".join(refused))
    return found


def _each(these: Sequence[This], do: Callable[[This], Result]) -> tuple[list[Result], list[str]]:
    """Call a function for each item at the same time; returns the results and the messages of refusals."""
    with ThreadPoolExecutor(max_workers=len(these)) as pool:
        futures = [pool.submit(do, one) for one in these]
    refused = [str(error) for one in futures if isinstance(error := one.exception(), ServerError)]
    return [one.result() for one in futures if not isinstance(one.exception(), ServerError)], refused


def _probed(server: Server) -> Found:
    """Return what a server said of itself; raises ServerError if it can't be reached or has no Python."""
    script = Path(probe.__file__).read_text(encoding="utf-8")
    command = on_server(server, ["/usr/bin/python3", "-c", script])
    request = {"folder": server.folder or FOLDER, "files": files_here()}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            answer, clock = _answers(process, json.dumps(request).encode() + b"\n")
            return _found(server, answer, clock)
        except (OSError, ValueError, KeyError, TypeError):
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_WITHIN_S)  # its exit code says more than the lack of an answer
            process.kill()
            assert process.stderr is not None
            words = " ".join(process.stderr.read(MAX_ANSWER_BYTES).decode(errors="replace").split())
        finally:
            process.kill()
    raise ServerError(unreachable(server, process.wait(), words))


def _answers(process: subprocess.Popen[bytes], request: bytes) -> tuple[dict[str, Any], Offset]:
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def time_there() -> float:
        stdin.write(b"\n")
        stdin.flush()
        return float(stdout.readline(MAX_ANSWER_BYTES))

    with _ended_after(process, PROBE_TIMEOUT_S):
        stdin.write(request)
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline(MAX_ANSWER_BYTES))
        return answer, estimate(time_there, time.time, CLOCK_QUESTIONS)


@contextmanager
def _ended_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kill a process that takes longer than `seconds`."""
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _found(server: Server, answer: dict[str, Any], clock: Offset) -> Found:
    return Found(
        server=server,
        is_root=bool(answer["is_root"]),
        user=str(answer["user"]),
        python=tuple(int(part) for part in answer["python"]),
        cores=float(answer["cores"]),
        free_bytes=int(answer["free_bytes"]),
        has_mininet=bool(answer["has_mininet"]),
        folder=str(answer["folder"]),
        exists=bool(answer["exists"]),
        has_environment=bool(answer["has_environment"]),
        digest=answer["digest"],
        address=str(answer["address"]),
        clock=clock,
        is_here=answer["boot_id"] == probe.boot_id(),
    )
