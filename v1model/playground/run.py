"""Running of a document: compiles its program, does its commands, sends its packets, returns what happened.

This happens in a process of its own with limits (`run`), because programs and documents come from others.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from v1model.backend import Tracing
from v1model.dataplane import DataPlaneError
from v1model.errors import CompileError
from v1model.frontend.preprocess import P4INCLUDE, PreprocessorError, preprocess
from v1model.playground.document import Document, DocumentError, decode
from v1model.playground.packet_text import PacketTextError, packet_bytes
from v1model.remote.cli import DataPlaneCommands
from v1model.sandbox import Source, sandboxed_compile
from v1model.switch import Switch
from v1model.trace.events import TraceFilter
from v1model.trace.formats import choices_text
from v1model.trace.outcomes import outcomes

if TYPE_CHECKING:
    from v1model.backend import CompiledProgram
    from v1model.errors import CompileWarning
    from v1model.ir import ExternInstance, Program
    from v1model.trace.events import TraceEvent

PROGRAM = "program.p4"
MAX_CPU_S = 60
MAX_DURATION_S = 120.0
MAX_MEMORY_BYTES = 4 << 30
MAX_PREPROCESSED_BYTES = 8 << 20
MAX_ANSWER_BYTES = 32 << 20
MAX_CELLS = 64  # number of first cells shown of a register or counter
MAX_EVENTS = 2000  # shown of a packet
MAX_OUTCOMES_SHOWN = 16  # of a packet
_INCLUDE = re.compile(r"(?:#|%:)(?:\s|/\*.*?\*/)*+(include\w*|import|embed)\b(.*)")
_ALLOWED = re.compile(r"[ \t]*<(?:core|v1model)\.p4>[ \t]*(?://.*|/\*.*)?\r?")
_MARKER = re.compile(r'^# \d+ "([^"\n]*)"', re.MULTILINE)
_OWN_FILES = {
    PROGRAM,
    "<built-in>",
    "<command-line>",
    str(P4INCLUDE / "core.p4"),
    str(P4INCLUDE / "v1model.p4"),
}
_CODE = "from v1model.playground.run import main; main()"


def run(document: bytes) -> bytes:
    """Return the JSON of `run_document` for a document, or the reason for having none: {"failure": ...}."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        answer, _ = process.communicate(document, MAX_DURATION_S)
    except subprocess.TimeoutExpired:
        answer = _failure(f"this took more than {MAX_DURATION_S:.0f} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode == -signal.SIGXCPU:
        return _failure(f"this took more than {MAX_CPU_S} s of CPU")
    return answer or _failure(
        "the process that ran this ended without an answer: a defect, or too little memory"
    )


def _failure(message: str) -> bytes:
    return json.dumps({"failure": message}).encode()


def main() -> None:
    """Run the document on standard input within the limits, and print the answer."""
    for limit, value in ((resource.RLIMIT_CPU, MAX_CPU_S), (resource.RLIMIT_AS, MAX_MEMORY_BYTES)):
        resource.setrlimit(limit, (value, value if limit != resource.RLIMIT_CPU else value + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer = json.dumps(run_document(decode(json.loads(sys.stdin.buffer.read())))).encode()
        if len(answer) > MAX_ANSWER_BYTES:
            answer = _failure("the traces are too long to be shown: send fewer packets")
    except (DocumentError, ValueError, RecursionError, MemoryError) as error:
        answer = _failure(str(error) or type(error).__name__)
    sys.stdout.buffer.write(answer)


def run_document(document: Document) -> dict[str, Any]:
    """Return what happened with a document as a dict for JSON.

    {"problems": errors and warnings of the program, "program": its tables and so on or None,
    "commands": [{"index", "error" or "said"}],
    "packets": [{"error"} or {"frame", "trace", "outputs", "outcomes", "state"}]}
    """
    answer: dict[str, Any] = {"problems": [], "program": None, "commands": [], "packets": []}
    try:
        compiled = _compile(document.program)
    except CompileError as error:
        answer["problems"] = [_problem("error", each) for each in error.all]
        return answer
    answer["problems"] = [_problem("warning", warning) for warning in compiled.warnings]
    answer["program"] = _description(compiled.program)
    with Switch(compiled) as switch:
        switch.set_clock(0)
        answer["commands"] = _command(switch, document)
        switch.trace(TraceFilter())
        answer["packets"] = _send(switch, document)
    return answer


def _compile(text: str) -> CompiledProgram:
    """Compile a program that includes nothing but core.p4 and v1model.p4.

    Authors of programs must not read files of this machine. Anything that looks like another include is
    refused before the preprocessor sees it, and the files that it opened are checked.
    """
    for match in _INCLUDE.finditer(text.replace("\\\r\n", "").replace("\\\n", "")):
        if match[1] != "include" or not _ALLOWED.fullmatch(match[2]):
            raise _other_file(match[2].strip())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / PROGRAM
        path.write_text(text)
        try:
            preprocessed = preprocess(path)
        except PreprocessorError as error:
            error.message = error.message.replace(f"{directory}/", "")
            raise
        preprocessed = preprocessed.replace(f"{directory}/", "")
        for file in _MARKER.findall(preprocessed):
            if file not in _OWN_FILES:
                raise _other_file(file)
        if len(preprocessed) > MAX_PREPROCESSED_BYTES:
            raise CompileError(
                f"with its macros this program has more than {MAX_PREPROCESSED_BYTES >> 20} MiB"
            )
        return sandboxed_compile(Source(preprocessed, PROGRAM, tracing=Tracing.ASSIGNMENTS))


def _other_file(name: str) -> CompileError:
    message = f"only <core.p4> and <v1model.p4> can be included here, not {name}"
    return CompileError(message, hint="paste what the file holds")


def _problem(severity: str, found: CompileError | CompileWarning) -> dict[str, Any]:
    span = found.span
    is_here = span is not None and span.file.endswith(PROGRAM)
    where = {"line": span.line, "column": span.column, "length": span.length} if span and is_here else {}
    elsewhere = f"{span.file}:{span.line}: " if span and not is_here else ""
    return {"severity": severity, "message": elsewhere + found.message, "hint": found.hint, **where}


def _description(program: Program) -> dict[str, Any]:
    """Return the names that a document can use: tables with keys and actions, registers, headers."""
    params = {action.name: action.params for action in program.actions}
    return {
        "tables": [
            {
                "name": table.name,
                "keys": [{"name": key.name, "kind": key.match_kind} for key in table.keys],
                "actions": [
                    {"name": action.action, "params": [param.name for param in params[action.action]]}
                    for action in table.actions
                ],
            }
            for table in program.tables
        ],
        "registers": [
            {"name": found.name, "size": found.size} for found in program.externs if found.kind == "register"
        ],
        "headers": [name for name, _ in program.headers.fields],
    }


def _command(switch: Switch, document: Document) -> list[dict[str, Any]]:
    said: list[str] = []
    commands = DataPlaneCommands(switch, said.append)  # type: ignore[arg-type]  # it uses no more than a DataPlane
    answers = []
    for index, line in enumerate(document.commands):
        said.clear()
        try:
            commands.run(line)
            answers.append({"index": index, "said": said[-1] if said else ""})
        except (ValueError, DataPlaneError) as error:
            answers.append({"index": index, "error": str(error)})
    return answers


def _send(switch: Switch, document: Document) -> list[dict[str, Any]]:
    """Send each packet at its time, in the order of the document; packets in queues leave in between."""
    answers: list[dict[str, Any]] = []
    for packet in document.packets:
        try:
            frame = packet_bytes(packet.text)
        except PacketTextError as error:
            answers.append({"error": str(error)})
            continue
        switch.set_clock(packet.time_us)
        others = _outcomes(switch, packet.port, frame, packet.time_us)
        switch.trace(TraceFilter())
        outputs = switch.inject(packet.port, frame, packet.time_us)
        trace = switch.take_trace()
        answers.append(
            {
                "frame": frame.hex(),
                "outputs": [{"port": o.port, "frame": o.data.hex(), "time_us": o.time_us} for o in outputs],
                "trace": [_event(event) for event in trace[:MAX_EVENTS]],
                "left_out": max(0, len(trace) - MAX_EVENTS),
                "outcomes": others,
                "state": _state(switch),
            }
        )
    return answers


def _outcomes(switch: Switch, port: int, frame: bytes, time_us: int) -> list[dict[str, Any]]:
    """Return what the packet would do for each choice of a group's member; [] if no group chooses."""
    if all(instance.kind != "action_selector" for instance in switch.program.externs):
        return []
    found = list(islice(outcomes(switch, port, frame, time_us), MAX_OUTCOMES_SHOWN))
    return [
        {
            "choices": choices_text(outcome.choices),
            "trace": [_event(event) for event in outcome.events[:MAX_EVENTS]],
            "left_out": max(0, len(outcome.events) - MAX_EVENTS),
        }
        for outcome in found
        if outcome.choices
    ]


def _event(event: TraceEvent) -> dict[str, Any]:
    return {
        "copy": event.copy,
        "packet": event.packet,
        "time_us": event.time_us,
        "kind": event.kind,
        "name": event.name,
        "values": {name: _plain(value) for name, value in event.values.items()},
    }


def _plain(value: object) -> object:
    """Return a value for JSON: bytes in hex, and integers beyond JavaScript's 53 bits as strings."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return hex(value) if isinstance(value, int) and not isinstance(value, bool) and value >> 53 else value


def _state(switch: Switch) -> dict[str, dict[str, object]]:
    """Return the nonzero ones of the first cells of registers and counters: {name: {index: value}}."""
    found: dict[str, dict[str, object]] = {}
    for instance in switch.program.externs:
        cells = _cells(switch, instance)
        if any(cells.values()):
            found[instance.name] = {str(index): _plain(cell) for index, cell in cells.items() if cell}
    return found


def _cells(switch: Switch, instance: ExternInstance) -> dict[int, object]:
    most = min(instance.size, MAX_CELLS)
    if instance.kind == "register":
        return {index: switch.register(instance.name, index) for index in range(most)}
    if instance.kind == "counter":
        counted = switch.counters(instance.name, 0, most)
        return {i: f"{c.packets} packets, {c.bytes} bytes" for i, c in enumerate(counted) if c.packets}
    return {}


__all__ = ["main", "run", "run_document"]
