"""Back end: an IR program becomes C, and the C a shared object in a cache."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.backend import build as building
from v1model.backend.program import generate
from v1model.backend.runtime_build import RuntimeBuild
from v1model.backend.tracing import Tracing

if TYPE_CHECKING:
    from v1model.backend.extern_source import ExternSource
    from v1model.backend.tracing import TraceSite
    from v1model.backend.unit import LogMessage
    from v1model.errors import CompileWarning
    from v1model.ir import Program

__all__ = ["CompiledProgram", "RuntimeBuild", "Tracing", "build", "building", "finish", "generate"]

LIBRARY = "program.so"
SOURCE = "program.c"


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program and the shared object that runs it.

    `messages` are the texts of its log_msg and assert calls. `trace_sites` are the places that report a
    packet, if it was compiled to be traced. `quick` is a shared object for use until `finish` has made
    `library`, or None if `library` is there. `custom_crcs` are the bits of the calls of crc16_custom and
    crc32_custom, in order. `warnings` are the front end's.
    """

    program: Program
    library: Path
    messages: tuple[LogMessage, ...] = ()
    trace_sites: tuple[TraceSite, ...] = ()
    tracing: Tracing = Tracing.OFF
    quick: Path | None = None
    custom_crcs: tuple[int, ...] = ()
    warnings: tuple[CompileWarning, ...] = ()


def build(
    program: Program,
    externs: ExternSource | None = None,
    *,
    sanitize: bool = False,
    tracing: Tracing = Tracing.OFF,
    quick: bool = False,
    runtime: RuntimeBuild | None = None,
) -> CompiledProgram:
    """Compile a program, or find it in the cache, with the user's C for its own externs.

    `sanitize` adds ASan and UBSan. `quick` makes only a quick build if there is no full one; a program with
    the user's C gets none, because its variables would be lost in the change of builds. `runtime` is a build
    of the runtime that was begun before with the same settings.
    """
    generated = generate(program, externs, tracing)
    source = generated.source
    library = building.cache_directory() / _key_of(source, sanitize=sanitize) / LIBRARY
    compiled = CompiledProgram(
        program,
        library,
        generated.messages,
        generated.trace_sites,
        tracing,
        custom_crcs=generated.custom_crcs,
    )
    if building.is_intact(library):
        building.mark_used(library.parent)
        return compiled
    quick = quick and not externs and not sanitize
    if quick:
        first = building.cache_directory() / building.key_of("quick", source) / LIBRARY
        compiled = replace(compiled, quick=first)
    runtime = runtime or RuntimeBuild(sanitize=sanitize, quick=quick)
    _make(compiled.quick or library, source, runtime, sanitize=sanitize, quick=quick)
    return compiled


def finish(compiled: CompiledProgram) -> CompiledProgram:
    """Make or find the full build of a program that has only a quick one."""
    if compiled.quick and not building.is_intact(compiled.library):
        source = _source_of(compiled, compiled.quick)
        _make(compiled.library, source, RuntimeBuild(), sanitize=False, quick=False)
    return replace(compiled, quick=None)


def _key_of(source: str, *, sanitize: bool) -> str:
    return building.key_of("program", source, str(sanitize))


def _source_of(compiled: CompiledProgram, quick: Path) -> str:
    """Return the C of a quick build: the file beside it, or made again if that was changed."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        source = (quick.parent / SOURCE).read_text()
        if _key_of(source, sanitize=False) == compiled.library.parent.name:
            return source
    return generate(compiled.program, None, compiled.tracing).source


def _make(library: Path, source: str, runtime: RuntimeBuild, *, sanitize: bool, quick: bool) -> None:
    """Put a shared object into the cache, unless it is there."""
    entry = library.parent
    if not building.is_intact(library):
        building.discard(entry)
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory) / LIBRARY
            building.compile_shared(source, target, runtime, sanitize=sanitize, quick=quick)
            files: dict[str, Path | bytes] = {
                Path(LIBRARY).with_suffix(building.CHECKSUM).name: building.checksum(target.read_bytes()),
                LIBRARY: target,
                SOURCE: source.encode(),
            }
            building.publish(entry, files)
    building.mark_used(entry)
