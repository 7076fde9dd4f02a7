"""The back end: an IR program becomes C, the C a shared object, kept in a cache."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.backend import build as building
from v1model.backend.program import generate
from v1model.backend.tracing import Tracing

if TYPE_CHECKING:
    from v1model.backend.extern_source import ExternSource
    from v1model.backend.tracing import TraceSite
    from v1model.backend.unit import LogMessage
    from v1model.ir import Program

__all__ = ["CompiledProgram", "Tracing", "build", "building", "generate"]

LIBRARY = "program.so"


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program and the shared object that runs it. `messages`: what its log_msg and assert say;
    `trace_sites`: where it tells of a packet, if it was compiled to be traced."""

    program: Program
    library: Path
    messages: tuple[LogMessage, ...] = ()
    trace_sites: tuple[TraceSite, ...] = ()
    tracing: Tracing = Tracing.OFF


def build(
    program: Program,
    externs: ExternSource | None = None,
    *,
    sanitize: bool = False,
    tracing: Tracing = Tracing.OFF,
) -> CompiledProgram:
    """Compiles a program with the user's C for its own externs, or finds it compiled; with ASan and UBSan
    if `sanitize`."""
    generated = generate(program, externs, tracing)
    source = generated.source
    entry = building.cache_directory() / building.key_of("program", source, str(sanitize))
    library = entry / LIBRARY
    if not building.is_intact(library):
        building.discard(entry)
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory) / LIBRARY
            building.compile_shared(source, target, sanitize=sanitize)
            files: dict[str, Path | bytes] = {
                Path(LIBRARY).with_suffix(building.CHECKSUM).name: building.checksum(target.read_bytes()),
                LIBRARY: target,
                "program.c": source.encode(),
            }
            building.publish(entry, files)
    building.mark_used(entry)
    return CompiledProgram(program, library, generated.messages, generated.trace_sites, tracing)
