"""Maker of the virtual environments, run with the system's own Python by `scripts/setup.sh`.

    environment.py check            exit code 2 and one sentence if this Python or folder does not fit
    environment.py ready GROUP      exit code 0 if everything is there, the compiled parts included
    environment.py installed GROUP  exit code 0 if all Python packages of the group are there
    environment.py make GROUP       makes the environment
    environment.py compile          compiles the C cores, or says why not

A group is "run" (requirements.lock: what `make run` needs) or "all" (requirements-all.lock: experiments,
tests and lint, too). Two more groups have environments of their own: "shell" (p4runtime-shell, .venv-shell)
and "docs" (the site's builder, .venv-docs).

An environment is made aside and moved into place once it is complete. It holds a stamp that says which Python
and which files it was made of. This file uses the standard library only, and no syntax newer than Python 3.7:
an older Python has to be able to say that it is too old.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {
    "run": "requirements.lock",
    "all": "requirements-all.lock",
    "shell": "requirements-shell.lock",
    "docs": "requirements-docs.lock",
}
PLACES = {"run": ".venv", "all": ".venv", "shell": ".venv-shell", "docs": ".venv-docs"}
PROJECTS = {"run": (".", "v1model"), "all": (".", "v1model"), "shell": (), "docs": ()}
"""Folders whose packages are installed in place (editable). A group without any has an environment without
Debian's packages and compiled parts."""
OLDEST, NEWEST = (3, 11), (3, 13)
MODULES_COMPILED = ("hostlib.native", "controller.policies.reuse.native")
RUN_VALUE_BYTES = "8192"
"""Value size of `make run` in bytes, for which the hosts' core is compiled. For another size it is compiled
at first use."""
NATIVE = ("hostlib/native", "controller/policies/reuse/native")

# Settings of pip in a user's environment that would install elsewhere than into the virtual environment.
ELSEWHERE = (
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_NO_BINARY",
    "PIP_DRY_RUN",
)  # fmt: skip
PYTHONS_OWN = ("PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
PROGRESS_STEP = 10

# Messages of pip.
HASHES_DIFFER = "DO NOT MATCH THE HASHES"
NOT_REACHED = "NewConnectionError|ConnectTimeout|NameResolutionError|ReadTimeout|Max retries|ProxyError"
PIP_OPTIONS = ("--disable-pip-version-check", "--progress-bar=off", "--no-input", "--retries=2")


class SetupError(Exception):
    """Failure to make an environment; the message says what failed, where, and what to do."""


def main(arguments: list[str]) -> int:
    """Carry out one of the commands above and return the exit code."""
    command, group = (*arguments, "run")[:2]
    try:
        if command == "check":
            check_python(sys.version_info[:2])
            check_folder(ROOT)
        elif command == "make":
            make(group)
        elif command == "compile":
            compile_cores()
        elif command == "ready":
            return 0 if is_installed(group) and (not PROJECTS[group] or is_compiled()) else 1
        elif command == "installed":
            return 0 if is_installed(group) else 1
        else:
            raise SetupError(f"no command {command!r}")
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"setup: {error.filename or ROOT}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def check_python(version: tuple[int, ...]) -> None:
    """Raise SetupError for a version, (major, minor), that Weir is not made for."""
    if not OLDEST <= version <= NEWEST:
        found = ".".join(map(str, version))
        raise SetupError(
            f"/usr/bin/python3 is Python {found}, and Weir needs 3.{OLDEST[1]} to 3.{NEWEST[1]}. "
            "Debian 12 and 13 and Ubuntu 24.04 have such a one"
        )


def check_folder(folder: Path) -> None:
    """Raise SetupError unless the folder can be written to and can hold symbolic links."""
    try:
        scratch = tempfile.TemporaryDirectory(prefix=".setup-", dir=str(folder))
    except OSError as error:
        raise SetupError(f"{folder}: {error.strerror}. The environment is made there") from None
    with scratch as name:
        try:
            (Path(name) / "link").symlink_to("target")
        except OSError as error:
            raise SetupError(
                f"{folder} is on a file system without symbolic links ({error.strerror}), as folders are "
                "that a virtual machine shares with its host. Clone to a folder of this system: ~/weir"
            ) from None


def recipe(group: str) -> str:
    """Return a description of what the group's environment is made of: this Python and a digest of files."""
    digest = hashlib.sha256()
    for name in (LOCKS[group], "pyproject.toml", "v1model/pyproject.toml", "scripts/environment.py"):
        digest.update((ROOT / name).read_bytes())
    python = sys.version.split()[0]
    return f"Python {python}, {sysconfig.get_platform()}, {digest.hexdigest()}\n"


def native_recipe() -> str:
    """Return a description of what the compiled parts are made of: sources, this Python and the compiler."""
    digest = hashlib.sha256()
    for folder in NATIVE:
        for path in sorted((ROOT / folder).iterdir()):
            if path.suffix in (".c", ".h", ".py"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    compiler = shutil.which(os.environ.get("CC", "cc"))
    has_headers = (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file()
    compiler_text = f"compiler {compiler}" if compiler else "no compiler"
    return f"{sys.version.split()[0]}, {compiler_text}, Python.h {has_headers}, {digest.hexdigest()}\n"


def is_installed(group: str) -> bool:
    """Return whether the environment is complete and made of the current files."""
    return _read(ROOT / PLACES[group] / (".ready-" + group)) == recipe(group)


def is_compiled() -> bool:
    """Return whether the cores were built from the current sources, with the compiler that is here now."""
    return _read(ROOT / PLACES["run"] / ".native") == native_recipe()


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def make(group: str) -> None:
    """Make the environment aside and replace the existing one with it."""
    place = ROOT / PLACES[group]
    aside, old = place.with_name(place.name + ".part"), place.with_name(place.name + ".old")
    for left in (aside, old):
        shutil.rmtree(str(left), ignore_errors=True)
    began = time.time()
    if group == "all" and is_installed("run") and not place.is_symlink():
        shutil.copytree(str(place), str(aside), symlinks=True)  # packages are added to the copy
    else:
        _say(f"creating the virtual environment {place.name}")
        _create(aside, group)
    _install(aside, group)
    _move_scripts(aside, place)
    for name in [group] + (["run"] if group == "all" else []):
        (aside / (".ready-" + name)).write_text(recipe(name))
    _keep_owner(aside)
    if os.path.lexists(str(place)):
        place.rename(old)
    aside.rename(place)
    if old.is_symlink():
        old.unlink()
    else:
        shutil.rmtree(str(old), ignore_errors=True)
    _say(f"Python packages: all there after {time.time() - began:.0f} s")


def _create(folder: Path, group: str) -> None:
    sees_mininet = ["--system-site-packages"] if PROJECTS[group] else []
    prompt = f"--prompt={PLACES[group]}"
    without_pip = ["--without-pip"] if bundled_pip() else []
    command = [sys.executable, "-m", "venv", prompt, *without_pip, *sees_mininet, str(folder)]
    done = subprocess.run(command, env=_environment(), check=False, capture_output=True, text=True)
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).split())[-300:]
        raise SetupError(f"{folder} could not be made ({words}). Is python3-venv installed?")


def bundled_pip() -> list[str]:
    """Return the arguments that run python3-venv's pip from its own file, or an empty list if it has none.

    Installing pip into the environment first would take longer than most of what pip installs.
    """
    bundled = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
    folders = (Path("/usr/share/python-wheels"), bundled)  # Debian uses the first folder
    wheels = [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))]
    return [str(wheels[-1] / "pip")] if wheels else []


def _install(folder: Path, group: str) -> None:
    """Install all packages of the group's list and, last, the project itself in place."""
    lock = LOCKS[group]
    total = sum(re.match(r"[A-Za-z0-9]", line) is not None for line in (ROOT / lock).open())
    _say(f"installing the {total} Python packages of {lock}")
    # The list is complete, so no dependencies are looked up. Bytecode is made at first use: most modules are
    # never used.
    wanted = ["--require-hashes", "--no-deps", "--no-compile", "-r", lock]
    output = _pip(folder, wanted, total) if total else ""
    if HASHES_DIFFER in output:
        _say(f"a package is not what {lock} says; asking again, past all caches")
        output = _pip(folder, ["--no-cache-dir", *wanted], total)
    editable = [word for project in PROJECTS[group] for word in ("-e", project)]
    if editable and not output:
        output = _pip(folder, ["--no-deps", "--no-build-isolation", "--no-compile", *editable])
    if output:
        raise SetupError(explained(output, lock))


def _pip(folder: Path, arguments: list[str], total: int = 0) -> str:
    """Run `pip install` and print its progress; return its output if it failed, else ""."""
    pip_program = bundled_pip() or ["-m", "pip"]
    command = [str(folder / "bin" / "python"), *pip_program, "install", *PIP_OPTIONS, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        output: list[str] = []
        found, next_at = 0, PROGRESS_STEP
        for line in pip.stdout:
            output.append(line)
            found += line.startswith(("Collecting", "Requirement already", "Obtaining"))
            if total and found >= next_at:
                _say(f"Python packages: {found} of {total} found")
                next_at += PROGRESS_STEP
            if total and line.startswith("Installing collected"):
                _say("Python packages: unpacking")
    return "".join(output) if pip.returncode else ""


def explained(output: str, lock: str) -> str:
    """Turn pip's output into one sentence that says what to do, or its last lines for an unknown cause."""
    if re.search(r"certificate is not yet valid|certificate has expired", output):
        now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        return (
            f"the package index's certificate does not hold at this machine's time, {now} UTC. Set the clock"
        )
    if "CERTIFICATE_VERIFY_FAILED" in output:
        return (
            "the package index's certificate is not one that this machine trusts. Behind a proxy that reads "
            "traffic, give its certificate: PIP_CERT=/path/to/it.pem make ..."
        )
    if HASHES_DIFFER in output:
        name = re.search(r"^\s+(\S+==\S+|https?://\S+).*:\n\s+Expected", output, re.MULTILINE)
        what = name[1].partition("#")[0] if name else "a package"
        return (
            f"{what} came with another content than {lock} names, twice and past pip's cache. A proxy on the "
            "way keeps or alters it: use another index (PIP_INDEX_URL)"
        )
    if re.search(NOT_REACHED, output):
        host = re.search(r"host='([^']+)'", output)
        where = f" ({host[1]})" if host else ""
        return f"the package index{where} was not reached. Check the network, or name another: PIP_INDEX_URL"
    if "No space left on device" in output:
        return f"no space is left on the disk of {ROOT} or of {tempfile.gettempdir()}"
    none = re.search(r"No matching distribution found for (\S+)", output)
    if none:
        python = sys.version.split()[0]
        return f"the package index has no {none[1]} for Python {python} on {sysconfig.get_platform()}"
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
    return "\n".join([f"the packages of {lock} could not be installed:", *lines[-5:]])


def _environment() -> dict[str, str]:
    """Return the caller's environment variables without those that would install packages elsewhere.

    The variables that are set overrule a user's pip settings file, too.
    """
    variables = {name: value for name, value in os.environ.items() if name not in ELSEWHERE + PYTHONS_OWN}
    return dict(
        variables, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PYTHONWARNINGS="ignore", PYTHONNOUSERSITE="1"
    )


def _move_scripts(folder: Path, place: Path) -> None:
    """Make the programs in `folder` name the folder they are moved to, `place`, instead."""
    made, named = str(folder).encode(), str(place).encode()
    for script in (folder / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            content = script.read_bytes()
            if made in content:
                script.write_bytes(content.replace(made, named))


def _keep_owner(folder: Path) -> None:
    """Give files that root made in another user's checkout to that user."""
    owner = ROOT.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(str(path), owner.st_uid, owner.st_gid, follow_symlinks=False)


def compile_cores() -> None:
    """Compile the C cores. Where that is impossible, the compilers say so, and Python does the work."""
    if is_compiled():
        return
    _say("compiling what hosts and policies do for each fragment")
    python = str(ROOT / PLACES["run"] / "bin" / "python")
    environment = dict(os.environ, WEIR_VALUE_BYTES=RUN_VALUE_BYTES)
    compiling = [
        subprocess.Popen([python, "-m", module], cwd=str(ROOT), env=environment)
        for module in MODULES_COMPILED
    ]
    for exit_code in [process.wait() for process in compiling]:
        if exit_code:
            raise SetupError(f"the compiled parts were not made; {python} -m hostlib.native says why")
    part = ROOT / PLACES["run"] / ".native.part"
    part.write_text(native_recipe())
    part.replace(part.with_name(".native"))
    _keep_owner(ROOT / PLACES["run"] / "lib" / "weir")


def _say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
