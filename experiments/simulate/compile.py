"""Compile the simulator (simulator/compiled.py), once for each version of its sources; it
takes about a minute.

    python -m experiments.simulate.compile

Without a C compiler, Python's headers or mypy, it says so, and simulations run in Python
with the same results.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from simulator.compiled import FLAGS, FROM, GROUP, MODULES, ROOT, folder, source

UNUSED_DAYS = 30
SCRATCH = ".new-"
"""Prefix of the folders in which builds are made and compared; a folder that remains is
of a killed process."""


class BuildError(Exception):
    """The simulator cannot be compiled here."""


def build() -> Path:
    """Compile the simulator unless it is compiled; return the build's folder. Raises BuildError."""
    built = folder()
    if built.is_dir():
        return built
    _check()
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=built.parent) as scratch:
            output_folder = _compile(Path(scratch))
            _compare(output_folder)
            if folder() != built:
                raise BuildError("its sources were changed meanwhile: once more, please")
            _publish(output_folder, built)
        _forget_unused(built)
    except OSError as error:
        raise BuildError(f"{error.filename}: {error.strerror}") from None
    return built


def _check() -> None:
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        raise BuildError(f"no C compiler {compiler} on PATH (apt-get install gcc)")
    headers = Path(sysconfig.get_paths()["include"])
    if not (headers / "Python.h").is_file():
        raise BuildError(f"no Python.h in {headers} (apt-get install python3-dev)")
    if find_spec("mypyc") is None or find_spec("setuptools") is None:
        raise BuildError("no mypyc (make setup installs it, with mypy)")


def _compile(scratch: Path) -> Path:
    """Compile all extensions and return their folder."""
    from mypyc.build import mypycify
    from setuptools import Distribution  # type: ignore[import-untyped]

    print(f"compiling the simulator: {len(MODULES)} modules, about a minute, once", file=sys.stderr)
    paths = [str(source(module).relative_to(ROOT)) for module in MODULES]
    options = ["--cache-dir", str(ROOT / ".mypy_cache" / "mypyc")]
    with _step("from Python to C"):
        extensions = mypycify([*options, *paths], target_dir=str(scratch / "c"), group_name=GROUP)
    output_folder = scratch / "made"
    output_folder.mkdir()
    with _step("from C to extensions"):
        for extension in extensions:
            extension.extra_compile_args = [*extension.extra_compile_args, *FLAGS]
        command = Distribution({"name": GROUP, "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch / "objects")
        command.ensure_finalized()
        command.run()
    for path in (scratch / "lib").rglob("*.so"):
        path.rename(output_folder / ".".join(path.relative_to(scratch / "lib").parts))
    return output_folder


def _compare(output_folder: Path) -> None:
    """Raise BuildError unless the build and Python give the same figures: some
    C compilers change results."""
    with _step("compared with Python, in scenarios of all kinds"):
        in_python, in_c = _figures(None), _figures(output_folder)
        if in_c[:1] != ["compiled"]:
            raise BuildError("it was not used where it was asked for")
        odd = [_short(line) for line, other in zip(in_c, in_python, strict=False) if line != other][1:]
        if odd or len(in_c) != len(in_python):
            raise BuildError(f"it does not say what Python says: {odd or f'{len(in_c)} lines'}")


def _figures(output_folder: Path | None) -> list[str]:
    """Return the figures of all kinds of scenarios, from the build at `output_folder` or, if None, Python."""
    environment = {**os.environ, "WEIR_PURE": "0", "WEIR_COMPILED": "0" if output_folder is None else "1"}
    if output_folder is not None:
        environment[FROM] = str(output_folder)
    command = [sys.executable, "-m", "experiments.simulate.kinds"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        why = _short((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1], 300)
        if output_folder is None:
            raise BuildError(f"Python alone fails: {why}")
        what = "it can't be loaded" if why.startswith("ImportError") else "it fails"
        raise BuildError(f"{what}: {why}")
    return done.stdout.splitlines()


def _short(line: str, most: int = 60) -> str:
    return line if len(line) <= most else f"{line[:most]}..."


def _publish(output_folder: Path, built: Path) -> None:
    """Move the build to where it is used from then on."""
    try:
        output_folder.rename(built)
    except OSError:  # not empty: another process was faster
        if not built.is_dir():
            raise


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    """Run a step of the build from the root of the checkout; show the output of its tools only if it fails.

    mypyc and setuptools exit by SystemExit then.
    """
    began_s = time.monotonic()
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with tempfile.TemporaryFile("w+", buffering=1, errors="replace") as output:
            try:
                with _all_output_to(output):
                    yield
            except BuildError:
                raise
            except (SystemExit, Exception) as error:
                output.seek(0)
                raise BuildError(f"{what}:\n{output.read().strip()[-4000:]}\n{error}") from error
    finally:
        os.chdir(before)
    print(f"  {what}: {time.monotonic() - began_s:.0f} s", file=sys.stderr)


@contextlib.contextmanager
def _all_output_to(file: TextIO) -> Iterator[None]:
    """Send all output to the file, also that of commands, which write to the descriptors."""
    with contextlib.ExitStack() as stack:
        for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            duplicate = os.dup(descriptor)
            stack.callback(os.close, duplicate)
            stack.callback(os.dup2, duplicate, descriptor)
            os.dup2(file.fileno(), descriptor)
        stack.enter_context(contextlib.redirect_stdout(file))
        stack.enter_context(contextlib.redirect_stderr(file))
        yield


def _forget_unused(newest: Path) -> None:
    """Delete builds that nobody used for UNUSED_DAYS.

    They are not deleted at once, because another checkout may use the same environment.
    """
    for other in (*newest.parent.glob(f"{GROUP}-*"), *newest.parent.glob(f"{SCRATCH}*")):
        with contextlib.suppress(FileNotFoundError):  # someone else removed it
            if other.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that temporary folders are removed
    if os.environ.get("WEIR_COMPILED") == "0":
        sys.exit(0)
    try:
        build()
    except KeyboardInterrupt:
        sys.exit(130)
    except BuildError as error:
        print(f"simulations run in Python alone, about twice as slow: {error}", file=sys.stderr)
