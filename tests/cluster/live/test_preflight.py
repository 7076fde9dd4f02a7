"""Servers that can't be used are refused, each by name, before anything is started on any."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from cluster.agents import Agents
from cluster.checkout import digest_here
from cluster.errors import ServerError
from cluster.preflight import inspect_servers
from cluster.servers import read_servers
from tests.cluster.servers import TestServers

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]


def refused(file: Path) -> str:
    with pytest.raises(ServerError) as caught:
        inspect_servers(read_servers([str(file)]))
    return str(caught.value)


def test_a_copy_has_the_files_of_this_checkout(servers: TestServers) -> None:
    found = inspect_servers(read_servers([str(servers.write_file(("a", "b")))]))
    assert [one.digest for one in found] == [digest_here(), digest_here()]
    assert all(one.is_root and one.has_mininet for one in found)
    assert [one.address for one in found] == [servers.servers[name].address for name in ("a", "b")]
    assert all(abs(one.clock.ahead_s) < 0.1 for one in found)


def test_a_server_that_is_not_there_and_one_that_lets_nobody_in_are_both_named(servers: TestServers) -> None:
    file = servers.write_file(("a", "b"))
    text = file.read_text() + '[nowhere]\nssh = "10.77.0.99"\n[stranger]\nssh = "nobody@10.77.0.3"\n'
    file.write_text(text)
    said = refused(file).splitlines()
    assert len(said) == 2
    assert said[0].startswith("server nowhere can't be reached")
    assert said[1].startswith("server stranger: its host key is not known here")


def test_a_key_that_is_not_known_there_is_said(servers: TestServers, tmp_path: Path) -> None:
    config = servers.folder / "ssh_config"
    other = servers.folder / "other_config"
    other.write_text(
        config.read_text().replace(f"IdentityFile {servers.folder}/key", "IdentityFile /dev/null")
    )
    file = tmp_path / "servers.toml"
    file.write_text(f'ssh_config = "{other}"\n[a]\nfolder = "/nowhere"\n')
    assert refused(file).startswith("server a lets nobody in without a password")


def test_another_revision_is_refused(servers: TestServers) -> None:
    changed = servers.servers["b"].checkout / "README.md"
    text = changed.read_text()
    changed.write_text(text + "\n")
    try:
        said = refused(servers.write_file(("a", "b")))
    finally:
        changed.write_text(text)
    assert said.startswith("server b: the files in")
    assert "are of another revision than here" in said


def test_a_folder_without_a_checkout_is_refused(servers: TestServers) -> None:
    file = servers.write_file(("a", "b"))
    file.write_text(file.read_text().replace(str(servers.servers["b"].checkout), "/nowhere"))
    assert refused(file).startswith("server b: /nowhere is no checkout with an environment")


def test_one_machine_under_two_names_is_refused(servers: TestServers) -> None:
    file = servers.write_file(("a",))
    file.write_text(file.read_text() + f'[again]\nssh = "a"\nfolder = "{servers.servers["a"].checkout}"\n')
    assert "servers a and again have the same address" in refused(file)


def other_python() -> str | None:
    """A Python of another version than this one, on PATH or of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    minors = [minor for minor in range(7, 20) if minor != sys.version_info.minor]
    on_path = (shutil.which(f"python3.{minor}") for minor in minors)
    of_pyenv = (str(one) for minor in minors for one in pyenv.glob(f"versions/3.{minor}.*/bin/python"))
    return next((one for one in (*of_pyenv, *on_path) if one is not None), None)


def test_another_python_is_refused(servers: TestServers, tmp_path: Path) -> None:
    python = other_python()
    if python is None:
        pytest.skip("there is no Python of another version on PATH or in pyenv")
    other = tmp_path / "python3"
    other.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    other.chmod(0o755)
    with servers.servers["b"].sessions_see(f"mount --bind {other} /usr/bin/python3"):
        said = refused(servers.write_file(("a", "b")))
    ours = ".".join(map(str, sys.version_info[:2]))
    assert said.startswith("server b has Python 3.")
    assert f"and this machine Python {ours}: install the same release of the operating system on both" in said


def test_a_server_without_python_is_refused(servers: TestServers) -> None:
    with servers.servers["b"].sessions_see("mount -t tmpfs none /usr/bin"):
        said = refused(servers.write_file(("a", "b")))
    assert said.startswith("server b has no /usr/bin/python3"), said


def test_a_user_who_is_not_root_is_refused(servers: TestServers) -> None:
    as_nobody = 'exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"'
    with servers.servers["b"].sessions_begin_with(as_nobody):
        said = refused(servers.write_file(("a", "b")))
    assert said.startswith("server b: network namespaces need root, and ssh logs in as nobody: use root@b"), (
        said
    )


def test_no_mininet_is_refused(servers: TestServers) -> None:
    folder = Path("/usr/lib/python3/dist-packages/mininet")
    with servers.servers["b"].sessions_see(f"mount -t tmpfs none {folder}"):
        said = refused(servers.write_file(("a", "b")))
    assert said.startswith("server b has no Mininet: run make setup in"), said


def test_too_little_disk_is_refused(servers: TestServers) -> None:
    server = servers.servers["b"]
    file = servers.write_file(("a", "b"))
    file.write_text(file.read_text().replace(f'folder = "{server.checkout}"', ""))
    with server.sessions_see(f"mount -t tmpfs -o size=64m none {server.home}"):
        said = refused(file)
    assert said.startswith("server b has 67 MB of disk left and needs 1,074: make room in /tmp and in"), said


@pytest.mark.skipif(shutil.which("faketime") is None, reason="needs faketime: apt-get install faketime")
def test_a_clock_seconds_apart_is_refused(servers: TestServers) -> None:
    late = 'exec faketime -f -3s sh -c "$SSH_ORIGINAL_COMMAND"'
    with servers.servers["b"].sessions_begin_with(late):
        said = refused(servers.write_file(("a", "b")))
    assert said.startswith("server b: its clock is 3.0 s behind this machine's: set both by NTP"), said


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_started(servers: TestServers) -> None:
    a, b = (servers.servers[name] for name in ("a", "b"))
    with (
        a.sessions_see("mount -t tmpfs none /usr/bin"),
        b.sessions_see("mount -t tmpfs none /usr/lib/python3/dist-packages/mininet"),
    ):
        said = refused(servers.write_file(("a", "b", "c"))).splitlines()
    assert [line.split(" has ")[0] for line in said] == ["server a", "server b"]
    assert not [
        process
        for server in servers.servers.values()
        for process in server.processes()
        if "cluster.agent" in process.cmdline()
    ]


def test_a_server_that_may_not_make_namespaces_is_refused(servers: TestServers, tmp_path: Path) -> None:
    bound = 'exec setpriv --bounding-set=-sys_admin sh -c "$SSH_ORIGINAL_COMMAND"'
    found = inspect_servers(read_servers([str(servers.write_file(("a", "b")))]))
    with (
        servers.servers["b"].sessions_begin_with(bound),
        pytest.raises(ServerError, match=r"server b: network namespaces can't be made here"),
        Agents(found, tmp_path),
    ):
        pass
