"""Compilation of programs from the network, in a process of its own that has limits and can be killed.

A program's text decides how much work it is. So a sender could keep a compiler busy for ever, take all
memory, or find a fault in it. The process gets its task on standard input, opens no file that the text names,
leaves its output in the cache and answers on standard output. It and each C compiler that it starts have the
limits below. The waiting process kills the whole group if it takes too long, and the end of the switch kills
it, too.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from v1model.backend import CompiledProgram, Tracing, building, finish
from v1model.compile import compile_text, find_compiled
from v1model.errors import CompileError
from v1model.frontend.ast import Span

if TYPE_CHECKING:
    from v1model.backend.extern_source import ExternSource

# p4/weir.p4 takes 1 s and 90 MB of the process, its full build 8 s and 200 MB of a C compiler.
MAX_CPU_S = 60  # of each process
MAX_DURATION_S = 300.0  # in all, on a busy machine
MAX_MEMORY_BYTES = 2 << 30  # of each process
MAX_FILE_BYTES = 256 << 20  # of a shared object, and so of a loaded program
MAX_OPEN_FILES = 256
MAX_ERROR_CHARACTERS = 1500  # of each part of an error: gRPC's clients take 8 KiB in all

_CODE = "from v1model.sandbox import main; main()"
_GRACE_S = 5
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Source:
    """Text that `preprocess` has made, and settings of its compilation.

    With `open_files`, places of errors may be looked up in the files that the text names, because the user of
    the switch made it on this machine.
    """

    text: str
    name: str
    externs: ExternSource | None = None
    tracing: Tracing = Tracing.OFF
    open_files: bool = False

    def find(self) -> CompiledProgram | None:
        """Return the cached program of this text, perhaps a quick build; None if there is none."""
        return find_compiled(self.text, self.name, self.externs, tracing=self.tracing)

    def compile(self) -> None:
        """Put a quick build into the cache; raises CompileError with place and reason if it can't."""
        compile_text(
            self.text, self.name, self.externs, tracing=self.tracing, quick=True, open_files=self.open_files
        )


def sandboxed_compile(source: Source) -> CompiledProgram:
    """Return the program, perhaps as a quick build, from the cache or compiled in a process of its own.

    Raises CompileError, and OSError if the result can't be stored.
    """
    compiled = source.find()
    if compiled is None:
        _run(source)
        compiled = source.find()
    if compiled is None:
        raise CompileError(
            "what was compiled is not in the cache",
            hint="if files of v1model were changed, start this process again",
        )
    return compiled


def sandboxed_finish(compiled: CompiledProgram) -> CompiledProgram:
    """Return the program with its full build, which is made in a process of its own if it is missing."""
    if compiled.quick and not building.is_intact(compiled.library):
        _run(compiled)
    return replace(compiled, quick=None)


def _run(task: Source | CompiledProgram) -> None:
    """Run the task in a process, and wait for it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(building.PACKAGE.parent), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    with building.running(process):
        try:
            answer, _ = process.communicate(pickle.dumps(task), MAX_DURATION_S)
        except subprocess.TimeoutExpired:
            answer = b""
        _kill_group(process)
    if answer:
        _check(answer)
    else:
        raise CompileError(_death(process.returncode))


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process, if it has not ended, and C compilers that it left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        process.wait()


def _check(answer: bytes) -> None:
    told = json.loads(answer)
    match told["kind"]:
        case "OSError":
            raise OSError(told["errno"], told["message"])
        case "CompileError":
            first, *others = (
                CompileError(each["message"], Span(*each["span"]) if each["span"] else None, each["hint"])
                for each in told["errors"]
            )
            first.others = tuple(others)
            raise first


def _death(code: int) -> str:
    if code == -signal.SIGXCPU:
        return f"compiling the program took more than {MAX_CPU_S} s of CPU"
    if code == -signal.SIGKILL:
        return f"compiling the program took more than {MAX_DURATION_S:.0f} s, or the switch ends"
    return f"the compiler ended without an answer (exit code {code}): a defect of the compiler"


# --- in the process ----------------------------------------------------------------------


def main() -> None:
    """Do the task on standard input within the limits, and print the result."""
    _set_limits()
    building.stay_in_group()
    task = pickle.loads(sys.stdin.buffer.read())  # from the process that started this one
    sys.stdout.write(json.dumps(_answer(task)))
    sys.stdout.flush()
    os._exit(0)  # threads that still compile the runtime for a refused program end with the group


def _set_limits() -> None:
    for limit, value in (
        (resource.RLIMIT_CPU, MAX_CPU_S + _GRACE_S),
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        most = resource.getrlimit(limit)[1]
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(limit, (allowed, allowed))
    # The soft limit's signal says which limit it was; the hard one kills.
    hard_s = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (min(MAX_CPU_S, hard_s), hard_s))
    # After the switch is killed, its result is no longer needed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _answer(task: Source | CompiledProgram) -> dict[str, Any]:
    try:
        if isinstance(task, Source):
            task.compile()
        else:
            finish(task)
    except CompileError as error:
        return {
            "kind": "CompileError",
            "errors": [_one(each.message, each.span, each.hint) for each in error.all],
        }
    except OSError as error:
        return {"kind": "OSError", "errno": error.errno or 0, "message": error.strerror or str(error)}
    except MemoryError:
        most = f"{MAX_MEMORY_BYTES >> 20} MiB"
        return _refusal(f"compiling the program takes more than {most} of memory")
    except RecursionError:
        return _refusal("the program is nested too deeply")
    return {"kind": ""}


def _refusal(message: str) -> dict[str, Any]:
    return {"kind": "CompileError", "errors": [_one(message, None, "")]}


def _one(message: str, span: Span | None, hint: str) -> dict[str, Any]:
    place = span and (_shortened(span.file), span.line, span.column, span.length)
    return {"message": _shortened(message), "span": place, "hint": _shortened(hint)}


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_ERROR_CHARACTERS else f"{text[:MAX_ERROR_CHARACTERS]} ..."
