"""What does not go with SERVERS is refused, by the variable's name."""

import pytest

from commands.errors import ExperimentError
from emulator.options import parse_options
from scenario.rules import check_played


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scheduler", "conductor"), "its router reaches nodes of this machine only"),
        (("--stores", "0"), "the index of nodes that lend is reached on this machine only"),
        (("--live", "1"), "what waits in queues is read on this machine only"),
        (("--metrics", "9100"), "processes are looked at on this machine only"),
    ],
)
def test_what_needs_processes_of_this_machine_is_refused(arguments: tuple[str, ...], words: str) -> None:
    check_played(parse_options(arguments, "run", ""))
    with pytest.raises(ExperimentError, match=words):
        check_played(parse_options((*arguments, "--servers", "a,b"), "run", ""))


def test_the_rest_goes_with_servers() -> None:
    check_played(parse_options(("--servers", "a,b", "--topo", "leafspine", "--traces", "1"), "run", ""))
