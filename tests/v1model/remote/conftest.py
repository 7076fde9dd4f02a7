"""A running switch for the tests of a module, and a shell for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.v1model.remote.shell import Shell
from tests.v1model.test_cli import ANY_PORT, running_switch

PROGRAM = Path(__file__).with_name("commands.p4")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_switch(PROGRAM, *ANY_PORT) as (_, found):
        yield found


@pytest.fixture
def shell(address: str) -> Iterator[Shell]:
    shell = Shell(address)
    yield shell
    for table in ("route", "acl"):
        shell(f"table_clear {table}", f"table_reset_default {table}")
    shell.session.close()
