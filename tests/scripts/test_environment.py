"""Set-up: which Python and folder it takes, when it does something, and what it says where it can't."""

import ast
import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NO_NETWORK = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}


def load(root: Path = ROOT) -> ModuleType:
    """scripts/environment.py of a checkout, as a module."""
    spec = importlib.util.spec_from_file_location("environment", root / "scripts" / "environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


environment = load()


FILES = ("scripts/environment.py", "scripts/setup.sh", "scripts/debian-packages.sh", "pyproject.toml")


def make_checkout(root: Path) -> Path:
    """The files of set-up, with locks that name no package."""
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in (*environment.LOCKS.values(), "v1model/pyproject.toml"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    for folder in environment.NATIVE:
        (root / folder).mkdir(parents=True)
        (root / folder / "core.c").write_text("int core;\n")
    return root


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which nothing was set up."""
    return make_checkout(tmp_path / "weir checkout")


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's checkout in which root made an environment of p4runtime-shell's kind, which has nothing but
    its
    list, though the settings of pip would install elsewhere."""
    folder = tmp_path_factory.mktemp("set-up")
    root = make_checkout(folder / "weir checkout")
    (folder / "pip.conf").write_text("[install]\nuser = true\n")
    if os.geteuid() == 0:
        os.chown(root, 65534, 65534)
    more = {
        "PIP_CONFIG_FILE": str(folder / "pip.conf"),
        "PIP_USER": "1",
        "PIP_TARGET": str(folder / "target"),
    }
    assert run(root, "ready", "shell").returncode == 1
    make(root, **more)
    return root


def run(root: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = ["/usr/bin/python3", "-I", "scripts/environment.py", *words]
    given = {**os.environ, **NO_NETWORK, **more}
    return subprocess.run(
        command, cwd=root, env=given, capture_output=True, text=True, timeout=120, check=False
    )


def make(root: Path, **more: str) -> Path:
    done = run(root, "make", "shell", **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / ".venv-shell"


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 14)])
def test_a_python_that_does_not_fit_is_named_with_those_that_do(version: tuple[int, int]) -> None:
    with pytest.raises(environment.SetupError, match=r"Python 3\.\d+, .* 3\.11 to 3\.13"):
        environment.check_python(version)


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_pythons_that_fit_are_those_of_pyproject(version: tuple[int, int]) -> None:
    environment.check_python(version)
    assert (
        f'requires-python = ">=3.{environment.OLDEST[1]},<3.{environment.NEWEST[1] + 1}"'
        in (ROOT / "pyproject.toml").read_text()
    )


def test_a_folder_without_symbolic_links_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As vboxsf and some 9p mounts answer."""

    def refuse(self: Path, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(environment.SetupError, match=rf"^{tmp_path} .*without symbolic links.*Clone to"):
        environment.check_folder(tmp_path)


def test_an_environment_is_ready_once_made_and_not_after_a_change(set_up: Path) -> None:
    assert run(set_up, "ready", "shell").returncode == 0
    lock = set_up / "requirements-shell.lock"
    lock.write_text("# another list\n")
    assert run(set_up, "ready", "shell").returncode == 1
    lock.write_text("")


def test_programs_name_the_place_that_they_are_in(set_up: Path) -> None:
    place = set_up / ".venv-shell"
    assert str(place) in (place / "bin" / "activate").read_text()
    for script in (place / "bin").iterdir():
        assert script.is_symlink() or ".part" not in script.read_text()


def test_pip_s_settings_that_install_elsewhere_are_overruled(set_up: Path) -> None:
    assert not (set_up.parent / "target").exists()


def test_what_root_makes_in_a_user_s_checkout_is_the_user_s(set_up: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("gives files away, which needs root")
    place = set_up / ".venv-shell"
    assert {path.lstat().st_uid for path in (place, *place.rglob("*"))} == {65534}


def test_an_environment_of_another_python_is_made_anew(checkout: Path) -> None:
    """The system was upgraded, and the old environment's interpreter and pip are gone."""
    place = make(checkout)
    stamp = place / ".ready-shell"
    stamp.write_text(stamp.read_text().replace("Python 3", "Python 2"))
    (place / "bin" / "python").unlink()
    assert run(checkout, "ready", "shell").returncode == 1
    subprocess.run([make(checkout) / "bin" / "python", "-c", "import sys"], check=True)


def test_ended_half_way_nothing_takes_the_place(checkout: Path) -> None:
    lock, pipe = checkout / "requirements-shell.lock", checkout / "pipe"
    packages = lock.read_text()
    os.mkfifo(pipe)
    lock.write_text(f"-r {pipe.name}\nabsent==1\n")  # pip waits for what nobody writes
    command = ["/usr/bin/python3", "-I", "scripts/environment.py", "make", "shell"]
    environ = {**os.environ, **NO_NETWORK}
    with subprocess.Popen(command, cwd=checkout, env=environ, start_new_session=True) as making:
        deadline_s = time.monotonic() + 60
        while not (checkout / ".venv-shell.part" / "bin").exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        os.killpg(making.pid, signal.SIGKILL)
    lock.write_text(packages)
    assert not (checkout / ".venv-shell").exists()
    assert run(checkout, "ready", "shell").returncode == 1
    make(checkout)
    assert not (checkout / ".venv-shell.part").exists()


def test_headers_that_came_later_have_the_cores_compiled_again(checkout: Path, tmp_path: Path) -> None:
    module = load(checkout)
    before = module.native_recipe()
    (checkout / environment.NATIVE[0] / "core.c").write_text("int changed;\n")
    assert module.native_recipe() != before
    headers = tmp_path / "include"
    headers.mkdir()
    module.sysconfig.get_paths, original = (lambda: {"include": str(headers)}), module.sysconfig.get_paths
    try:
        without = module.native_recipe()
        (headers / "Python.h").write_text("")
        assert module.native_recipe() != without
    finally:
        module.sysconfig.get_paths = original


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate is not yet valid (_ssl.c:992)", "Set the clock"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate", "PIP_CERT"),
        (
            "Max retries exceeded HTTPSConnectionPool(host='pypi.org', port=443): NewConnectionError\n"
            "ERROR: No matching distribution found for grpcio==1.85.1",
            r"the package index \(pypi.org\) was not reached",
        ),
        ("ERROR: No matching distribution found for grpcio==1.85.1", "no grpcio==1.85.1 for Python 3"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "no space",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n"
            "    rich==15.0.0 from https://proxy/rich.whl (from -r x (line 3)):\n        Expected sha256 ab",
            "rich==15.0.0 came with another content than requirements.lock names.*proxy",
        ),
        ("ERROR: something else", "could not be installed:\nERROR: something else"),
    ],
)
def test_pip_s_words_become_a_sentence(said: str, sentence: str) -> None:
    with pytest.raises(environment.SetupError, match=sentence):
        raise environment.SetupError(environment.explained(said, "requirements.lock"))


def installed(root: Path, lock: str, monkeypatch: pytest.MonkeyPatch, **settings: str) -> str:
    """What is said where the list of p4runtime-shell's environment can't be installed."""
    for name, value in {**NO_NETWORK, **settings}.items():
        monkeypatch.setenv(name, value)
    (root / "requirements-shell.lock").write_text(lock)
    module = load(root)
    try:
        with pytest.raises(module.SetupError) as error:
            module._install(root / ".venv-shell", "shell")
    finally:
        (root / "requirements-shell.lock").write_text("")
    return str(error.value)


def test_an_index_that_is_not_there_is_said_so_soon(set_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began_s = time.monotonic()
    nowhere = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "https://127.0.0.1:9/simple"}
    said = installed(set_up, f"rich==15.0.0 --hash=sha256:{'0' * 64}\n", monkeypatch, **nowhere)
    assert said.startswith("the package index was not reached")
    assert time.monotonic() - began_s < 60


@pytest.mark.slow
def test_another_content_than_the_list_names_is_asked_for_again_past_caches(
    set_up: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weirtest-1.0-py3-none-any.whl").write_bytes(b"what a proxy made of it")
    lock = f"weirtest==1.0 --hash=sha256:{'0' * 64}\n"
    said = installed(set_up, lock, monkeypatch, PIP_FIND_LINKS=str(tmp_path))
    assert "asking again, past all caches" in capsys.readouterr().out
    assert "came with another content than requirements-shell.lock names, twice" in said


def fake_debian(folder: Path, known: str, installed: str = "") -> dict[str, str]:
    """A PATH on which apt and dpkg know some packages, and write down what they are asked to install."""
    folder.mkdir()
    programs = {
        "dpkg-query": f'[ "$4" != "{installed}" ] || echo "install ok installed"',
        "apt-cache": f'for word in {known}; do [ "$2" = $word ] && exit 0; done; exit 100',
        "apt-get": f'[ $1 = update ] || echo "$@" >>{folder}/asked; exit ${{APT_FAILS:-0}}',
        "id": "echo ${AS_USER:-0}",
    }
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def packages(root: Path, given: dict[str, str], *names: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "scripts/debian-packages.sh", "setup", *names]
    return subprocess.run(
        command, cwd=root, env=given, capture_output=True, text=True, timeout=60, check=False
    )


GLIB = "libglib2.0-0t64|libglib2.0-0"


@pytest.mark.parametrize(
    ("release", "name"),
    [("Debian 12", "libglib2.0-0"), ("Debian 13", "libglib2.0-0t64"), ("Ubuntu 24.04", "libglib2.0-0t64")],
)
def test_a_package_is_installed_by_the_name_that_the_release_has_for_it(
    checkout: Path, tmp_path: Path, release: str, name: str
) -> None:
    given = fake_debian(tmp_path / "bin", known=f"gcc {name}")
    done = packages(checkout, given, "gcc", GLIB)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bin" / "asked").read_text().rstrip().endswith(f" gcc {name}")


@pytest.mark.parametrize("installed", ["libglib2.0-0", "libglib2.0-0t64"])
def test_a_package_that_is_there_by_either_name_is_not_missing(
    checkout: Path, tmp_path: Path, installed: str
) -> None:
    given = fake_debian(tmp_path / "bin", known="", installed=installed)
    done = packages(checkout, {**given, "AS_USER": "1000"}, GLIB)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_root_the_missing_packages_are_named(checkout: Path, tmp_path: Path) -> None:
    given = fake_debian(tmp_path / "bin", known="gcc")
    done = packages(checkout, {**given, "AS_USER": "1000"}, "gcc")
    assert "are missing and need root to install: gcc" in done.stderr


def test_a_release_that_does_not_know_a_package_is_told_which_do(checkout: Path, tmp_path: Path) -> None:
    done = packages(checkout, fake_debian(tmp_path / "bin", known="gcc"), "mininet")
    assert "no package called mininet" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("E: Release file for http://deb is not valid yet (invalid for another 3d)", "Set the clock"),
        ("E: Failed to fetch http://deb/x  Could not connect to deb", "package index was not reached"),
        ("E: Sub-process /usr/bin/dpkg returned an error code (1)", "could not install gcc"),
    ],
)
def test_apt_s_words_become_a_sentence(checkout: Path, tmp_path: Path, words: str, sentence: str) -> None:
    given = fake_debian(tmp_path / "bin", known="gcc")
    (tmp_path / "bin" / "apt-get").write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 100\n")
    done = packages(checkout, given, "gcc")
    assert sentence in done.stderr
    assert done.returncode == 1


def test_two_at_once_in_one_folder_do_not_meet(set_up: Path) -> None:
    """The second waits for the first, says so, and finds all of it done."""
    stamp = set_up / ".venv-shell" / ".ready-shell"
    text = stamp.read_text()
    (set_up / "build").mkdir(exist_ok=True)
    with (set_up / "build" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp.unlink()
        command = ["sh", "scripts/setup.sh", "shell"]
        second = subprocess.Popen(command, cwd=set_up, stdout=subprocess.PIPE, text=True)
        assert second.stdout is not None
        assert "another make sets up this folder; waiting for it" in second.stdout.readline()
        stamp.write_text(text)
    assert (second.wait(60), second.stdout.read()) == (0, "")


def test_files_of_a_checkout_have_the_lines_of_unix_whatever_git_is_told() -> None:
    """A clone with core.autocrlf=true has scripts that a shell can read."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = [
        "git",
        "check-attr",
        "eol",
        "text",
        "--",
        "scripts/setup.sh",
        "Makefile",
        "docs/pictures/report.png",
    ]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "scripts/setup.sh: eol: lf" in said
    assert "Makefile: eol: lf" in said
    assert "docs/pictures/report.png: text: unset" in said


def test_what_make_run_needs_has_wheels_for_arm64_or_is_python_alone() -> None:
    """Packages that don't are those of experiments, marked in the list of all."""
    run_list = (ROOT / "requirements.lock").read_text()
    for name in ("libcachesim", "constriction", "matplotlib", "plotly", "mypy", "boto3"):
        assert f"\n{name}==" not in run_list
    marked = [
        line
        for line in (ROOT / "requirements-all.lock").read_text().splitlines()
        if "platform_machine" in line
    ]
    assert [line.partition("==")[0] for line in marked] == ["constriction", "libcachesim"]


def test_both_lists_name_the_same_versions() -> None:
    def versions(name: str) -> set[str]:
        lines = (ROOT / name).read_text().splitlines()
        return {line.split(" ")[0] for line in lines if "==" in line and line[0].isalnum()}

    assert versions("requirements.lock") <= versions("requirements-all.lock")


def test_environment_py_can_be_read_by_the_oldest_python_that_is_refused() -> None:
    ast.parse((ROOT / "scripts" / "environment.py").read_text(), feature_version=(3, 7))
    assert sys.version_info >= environment.OLDEST
