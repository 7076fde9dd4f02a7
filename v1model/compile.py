"""Compilation of a P4 file to a loadable program, with a cache by the preprocessed text.

On a hit neither parser nor checker nor C compiler runs.
"""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.backend import CompiledProgram, RuntimeBuild, Tracing, build, building, finish
from v1model.backend.extern_source import ExternSource
from v1model.diagnostics import DEFAULT_MAX_ERRORS, Diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from v1model.ir import Program

PICKLE = "program.pickle"


def compile_p4(
    path: str | Path,
    include_dirs: Iterable[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    *,
    externs: str | Path | None = None,
    sanitize: bool = False,
    tracing: Tracing = Tracing.OFF,
    quick: bool = False,
) -> CompiledProgram:
    """Compile a v1model program; raises CompileError that says where and why it can't be.

    `externs` is a C file that implements the externs that are not v1model's. `tracing` says what can be
    traced of packets. `quick` allows a build that is ready sooner (v1model.full_build replaces it by the full
    one).
    """
    from v1model.frontend.preprocess import preprocess

    text = preprocess(Path(path), [Path(directory) for directory in include_dirs], defines)
    source = ExternSource.read(Path(externs)) if externs else None
    return compile_text(
        text, str(path), source, sanitize=sanitize, tracing=tracing, quick=quick, open_files=True
    )


def compile_text(
    text: str,
    name: str,
    externs: ExternSource | None = None,
    *,
    sanitize: bool = False,
    tracing: Tracing = Tracing.OFF,
    quick: bool = False,
    open_files: bool = False,
    max_errors: int = DEFAULT_MAX_ERRORS,
) -> CompiledProgram:
    """Compile a text that `preprocess` made from the file `name`, as `compile_p4` compiles a file.

    With `open_files`, places of errors may be looked up in the files that the text names, because it was made
    here. `max_errors` is the number of errors that are collected.
    """
    entry = _entry(text, name, externs, sanitize=sanitize, tracing=tracing)
    compiled = _cached(entry)
    if compiled is None:
        quick = quick and externs is None and not sanitize
        runtime = RuntimeBuild(sanitize=sanitize, quick=quick)
        diagnostics = Diagnostics(max_errors)
        program = _lower(
            text, name, diagnostics, has_custom_externs=externs is not None, open_files=open_files
        )
        compiled = build(program, externs, sanitize=sanitize, tracing=tracing, quick=quick, runtime=runtime)
        compiled = replace(compiled, warnings=tuple(diagnostics.warnings))
        building.publish(entry, {PICKLE: pickle.dumps(compiled, protocol=pickle.HIGHEST_PROTOCOL)})
    return compiled if quick else finish(compiled)


def find_compiled(
    text: str, name: str, externs: ExternSource | None = None, *, tracing: Tracing = Tracing.OFF
) -> CompiledProgram | None:
    """Return the program that `compile_text` has made of the text before, perhaps a quick build.

    It is None if the cache does not have it.
    """
    return _cached(_entry(text, name, externs, sanitize=False, tracing=tracing))


def _entry(text: str, name: str, externs: ExternSource | None, *, sanitize: bool, tracing: Tracing) -> Path:
    given = externs.text() if externs else ""
    key = building.key_of("source", text, name, given, str(sanitize), tracing)
    return building.cache_directory() / key


def _lower(
    text: str, name: str, diagnostics: Diagnostics, *, has_custom_externs: bool, open_files: bool
) -> Program:
    from v1model.frontend import load_text  # a hit in the cache does not need them
    from v1model.midend import lower

    program = load_text(text, name, diagnostics, open_files=open_files)
    return lower(program, name, has_custom_externs=has_custom_externs)


def _cached(entry: Path) -> CompiledProgram | None:
    """Return a compiled program from the cache, or None; damaged ones are removed."""
    try:
        compiled = pickle.loads((entry / PICKLE).read_bytes())
        if isinstance(compiled, CompiledProgram):
            building.mark_used(entry)
            for library in (compiled.library, compiled.quick):
                if library and building.is_intact(library):
                    building.mark_used(library.parent)
                    return compiled if library is compiled.quick else replace(compiled, quick=None)
    except FileNotFoundError:
        return None
    except Exception:
        pass
    shutil.rmtree(entry, ignore_errors=True)
    return None
