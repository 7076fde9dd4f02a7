"""The back end: an IR program becomes C, the C a shared object, kept in a cache."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.backend import build as building
from v1model.backend.program import generate

if TYPE_CHECKING:
    from v1model.backend.unit import LogMessage
    from v1model.ir import Program

__all__ = ["CompiledProgram", "build", "building", "generate"]

LIBRARY = "program.so"


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program and the shared object that runs it. `messages`: what its log_msg and assert say."""

    program: Program
    library: Path
    messages: tuple[LogMessage, ...] = ()


def build(program: Program, *, sanitize: bool = False) -> CompiledProgram:
    """Compiles a program, or finds it compiled; with ASan and UBSan if `sanitize`."""
    source, messages = generate(program)
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
    return CompiledProgram(program, library, messages)
