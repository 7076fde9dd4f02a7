"""Three servers for all tests of this folder."""

from collections.abc import Iterator

import pytest

from cluster.checkout import copy
from cluster.servers import read_servers
from tests.cluster.servers import TestServers, make_servers, missing
from topologies import remains

NAMES = ("a", "b", "c")


@pytest.fixture(scope="session")
def servers() -> Iterator[TestServers]:
    """Servers whose checkout was copied by SSH, with the environment of this one."""
    why = missing()
    if why:
        pytest.skip(why)
    with make_servers(NAMES) as made:
        for server in read_servers([str(made.file)]):
            there = made.servers[server.name]
            there.checkout = there.home / "checkout"
            copy(server, str(there.checkout))
            there.link_environment()
        made.write_file(NAMES)
        yield made
    remains.clean()  # of servers that were killed
