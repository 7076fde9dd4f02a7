"""Compile the simulator (experiments/compiled.py), once for each version of its sources; about a minute.

    python -m experiments.compile

Where that can't be done, for want of a C compiler, Python's headers or mypy, it says so: simulations then run
in Python, with the same results.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from experiments.compiled import FLAGS, GROUP, MODULES, ROOT, folder, source

UNUSED_DAYS = 30


class BuildError(Exception):
    """The simulator can't be compiled here."""


def build() -> Path:
    """Compile unless it is there; where the build lies. BuildError."""
    built = folder()
    if built.is_dir():
        return built
    _check()
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=built.parent) as scratch:
            made = _compile(Path(scratch))
            if folder() != built:
                raise BuildError("its sources were changed meanwhile: once more, please")
            with contextlib.suppress(FileExistsError):  # someone else was as fast
                made.rename(built)
        _compare(built)
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
    """A folder with all extensions."""
    from mypyc.build import mypycify
    from setuptools import Distribution  # type: ignore[import-untyped]

    print(f"compiling the simulator: {len(MODULES)} modules, about a minute, once", file=sys.stderr)
    paths = [str(source(module).relative_to(ROOT)) for module in MODULES]
    options = ["--cache-dir", str(ROOT / ".mypy_cache" / "mypyc")]
    with _step("from Python to C"):
        extensions = mypycify([*options, *paths], target_dir=str(scratch / "c"), group_name=GROUP)
    made = scratch / "made"
    made.mkdir()
    with _step("from C to extensions"):
        for extension in extensions:
            extension.extra_compile_args = [*extension.extra_compile_args, *FLAGS]
        command = Distribution({"name": GROUP, "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch / "objects")
        command.ensure_finalized()
        command.run()
    for path in (scratch / "lib").rglob("*.so"):
        path.rename(made / ".".join(path.relative_to(scratch / "lib").parts))
    return made


def _compare(built: Path) -> None:
    """A build that says anything else than Python is removed: some C compiler takes liberties."""
    with _step("compared with Python, in scenarios of all kinds"):
        in_python, in_c = (_figures(wanted) for wanted in ("0", "1"))
        if in_python[:1] != ["Python"]:
            raise BuildError(f"Python alone fails: {in_python}")
        if in_c[:1] != ["compiled"] or in_c[1:] != in_python[1:]:
            shutil.rmtree(built)
            odd = [line[:60] for line, other in zip(in_c, in_python, strict=False) if line != other]
            raise BuildError(f"it does not say what Python says: {odd[1:] or in_c}")


def _figures(wanted: str) -> list[str]:
    environment = {**os.environ, "WEIR_COMPILED": wanted, "WEIR_PURE": "0"}
    command = [sys.executable, "-m", "experiments.simulator.kinds"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if not done.returncode else [done.stderr[-2000:]]


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    """What mypyc and setuptools say is shown only where they fail; they end by SystemExit, from the root."""
    began_s, said = time.monotonic(), io.StringIO()
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            yield
    except BuildError:
        raise
    except (SystemExit, Exception) as error:
        raise BuildError(f"{what}:\n{said.getvalue().strip()[-4000:]}\n{error}") from error
    finally:
        os.chdir(before)
    print(f"  {what}: {time.monotonic() - began_s:.0f} s", file=sys.stderr)


def _forget_unused(newest: Path) -> None:
    """Older builds go after a while: another checkout may use the same environment."""
    for other in newest.parent.glob(f"{GROUP}-*"):
        if other.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
            shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    try:
        build()
    except BuildError as error:
        print(f"simulations run in Python alone, 2 to 3 times as slow: {error}", file=sys.stderr)
