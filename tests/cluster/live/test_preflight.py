"""Servers that can't be used are refused, each by name, before anything is started on any."""

from pathlib import Path

import pytest

from cluster.checkout import digest_here
from cluster.errors import ServerError
from cluster.preflight import look_at
from cluster.servers import read_servers
from tests.cluster.servers import TestServers

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]


def refused(file: Path) -> str:
    with pytest.raises(ServerError) as caught:
        look_at(read_servers([str(file)]))
    return str(caught.value)


def test_a_copy_has_the_files_of_this_checkout(servers: TestServers) -> None:
    found = look_at(read_servers([str(servers.write_file(("a", "b")))]))
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
