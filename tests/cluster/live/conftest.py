"""Three servers for all tests of a file."""

from collections.abc import Iterator

import pytest

from tests.cluster.servers import TestServers, make_servers, missing
from topologies import run_records

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def servers() -> Iterator[TestServers]:
    """Servers whose checkout was copied by SSH, with the environment of this one."""
    why = missing()
    if why:
        pytest.skip(why)
    with make_servers(NAMES, cores=None) as made:
        made.copy_checkout()
        yield made
    run_records.clean()  # of servers that were killed
