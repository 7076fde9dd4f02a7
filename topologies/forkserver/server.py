"""Process that forks: `python -m topologies.forkserver.server SOCKET_FD MODULE...`

It imports the modules, sends a message, and then starts one of them as a program for every request on the
socket: a JSON object together with the three standard streams. It answers {"pid"} in the order of the
requests, and sends {"ended", "code"} whenever a program has ended. It ends when its socket closes, and its
children end with it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from typing import Any

MAX_REQUEST_BYTES = 1 << 16
_STREAMS = 3
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: Sequence[str]) -> int:
    """Run the server and return its exit code; in a child, return the program's exit code."""
    link = socket.socket(fileno=int(arguments[0]))
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # as v1model.cli, which sets it before it imports gRPC
    for module in arguments[1:]:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # keeps the collector from writing to pages that children share
    ended, wake = socket.socketpair()
    for end in (ended, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    server = os.getpid()
    link.send(b"{}")
    with selectors.DefaultSelector() as selector:
        for readable in (link, ended):
            selector.register(readable, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is ended:
                    ended.recv(4096)
                    _report_ended(link)
                    continue
                text, streams, _, _ = socket.recv_fds(link, MAX_REQUEST_BYTES, _STREAMS)
                if not text:
                    return 0
                pid = os.fork()
                if not pid:
                    for inherited in (selector, link, ended, wake):
                        inherited.close()
                    return _run(json.loads(text), streams, server)
                for stream in streams:
                    os.close(stream)
                link.send(json.dumps({"pid": pid}).encode())


def _report_ended(link: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        link.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


def _run(request: dict[str, Any], streams: Sequence[int], server: int) -> int:
    """Become the requested program in the child process, and return its exit code.

    The child gets SIGTERM if the server ends.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    module, arguments = request["module"], request["arguments"]
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _libc.prctl(_PR_SET_NAME, module.encode())  # what ps and top show; the kernel keeps 15 characters
    if os.getppid() != server:
        return 1  # the server ended before prctl took effect
    if request["namespace"] is not None:
        _enter(request["namespace"])
    sys.argv = [module, *arguments]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the module was imported before it runs
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _enter(namespace: str) -> None:
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"{namespace}: {os.strerror(ctypes.get_errno())}")
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
