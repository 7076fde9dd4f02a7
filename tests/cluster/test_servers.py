"""What SERVERS may name, and what is said of the rest."""

from pathlib import Path

import pytest

from cluster.servers import MAX_SERVERS, Server, read_servers
from commands.errors import OptionError


def test_a_list_names_what_ssh_knows() -> None:
    assert read_servers(["a", "root@b.lab", "10.0.0.3"]) == (
        Server("a", "a"),
        Server("b.lab", "root@b.lab"),
        Server("10.0.0.3", "10.0.0.3"),
    )


@pytest.mark.parametrize(
    "name", ["-oProxyCommand=reboot", "a b", "a;reboot", "$(reboot)", "a\nb", "", "@a", "root@", "root@-v"]
)
def test_what_ssh_or_a_shell_would_take_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="is no server's name"):
        read_servers([name])


def test_a_server_is_named_once() -> None:
    with pytest.raises(OptionError, match="a is named twice"):
        read_servers(["a", "b", "root@a"])


def test_there_is_a_largest_number_of_servers() -> None:
    with pytest.raises(OptionError, match=f"{MAX_SERVERS + 1} servers, and {MAX_SERVERS} are the most"):
        read_servers([f"s{number}" for number in range(MAX_SERVERS + 1)])


def test_a_file_says_more(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host a\n")
    file = tmp_path / "servers.toml"
    file.write_text(
        'ssh_config = "config"\n[a]\nssh = "root@10.0.0.1"\naddress = "10.1.0.1"\ncores = 8\n'
        'folder = "/opt/weir"\n[b]\n'
    )
    config = (tmp_path / "config").resolve()
    assert read_servers([str(file)]) == (
        Server("a", "root@10.0.0.1", config, "10.1.0.1", 8, "/opt/weir"),
        Server("b", "b", config),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no server"),
        ("[a", "is no TOML file"),
        ("a = 1", "a is no table"),
        ("[a]\nport = 22", r"\[a\] has no 'port': it takes ssh, address, cores, folder"),
        ("[a]\ncores = 0", "cores must be from 0.1 to 4096, not 0"),
        ("[a]\ncores = true", "cores can't be True"),
        ("[a]\ncores = nan", "cores must be from 0.1 to 4096"),
        ('[a]\naddress = "a.lab"', "address must be an IPv4 address, not 'a.lab'"),
        ('[a]\nfolder = "weir"', "folder must begin with /, not 'weir'"),
        ('[a]\nssh = "-v"', "is no server's name"),
        ('["-v"]', "is no server's name"),
        ('ssh_config = "none"\n[a]', "ssh_config is no file"),
        ("ssh_config = 1\n[a]", "ssh_config is no file"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(text)
    with pytest.raises(OptionError, match=said):
        read_servers([str(file)])


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="No such file"):
        read_servers([str(tmp_path / "servers.toml")])
