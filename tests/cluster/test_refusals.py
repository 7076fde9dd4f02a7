"""Each server that can't be used is refused in a sentence with its name, before anything is started."""

from dataclasses import replace

import pytest

from cluster.clocks import Offset
from cluster.refusals import Found, refusal, twice, unreachable
from cluster.servers import Server

OURS = Server("b", "root@b")
THEIRS = Server("b", "root@b", folder="/opt/weir")
FIT = Found(
    server=OURS, is_root=True, user="root", python=(3, 11, 2), cores=8.0, free_bytes=10**11,
    has_mininet=True, folder="/root/.cache/weir/checkout", exists=True, has_environment=True, digest="same",
    address="10.0.0.2", clock=Offset(0.01, 0.001),
)  # fmt: skip


def said(found: Found) -> str | None:
    return refusal(found, "same", (3, 11))


@pytest.mark.parametrize("server", [OURS, THEIRS])
def test_a_fit_server_is_not_refused(server: Server) -> None:
    assert said(replace(FIT, server=server)) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"python": (3, 13, 1)}, "has Python 3.13 and this machine Python 3.11: install the same"),
        ({"is_root": False, "user": "eve"}, "need root, and ssh logs in as eve: use root@b"),
        ({"free_bytes": 10**8}, "has 100 MB of disk left and needs 268"),
        ({"free_bytes": 10**9, "has_environment": False}, "has 1,000 MB of disk left and needs 1,074"),
        ({"clock": Offset(1.2, 0.1)}, "its clock is 1.2 s ahead of this machine's: set both by NTP"),
        ({"clock": Offset(-60.0, 0.1)}, "its clock is 60.0 s behind this machine's"),
        ({"server": THEIRS, "exists": False}, "is no checkout with an environment: clone there"),
        ({"server": THEIRS, "has_environment": False}, "is no checkout with an environment"),
        ({"server": THEIRS, "has_mininet": False}, "has no Mininet: run make setup"),
        ({"server": THEIRS, "digest": "other"}, "are of another revision than here: check out the same"),
        ({"server": THEIRS, "digest": None}, "are of another revision than here"),
    ],
)
def test_the_sentence_says_which_server_and_what_to_do(change: dict[str, object], words: str) -> None:
    sentence = said(replace(FIT, **change))  # type: ignore[arg-type]
    assert sentence is not None
    assert sentence.startswith("server b")
    assert words in sentence
    assert "\n" not in sentence


def test_a_clock_that_may_be_right_is_not_refused() -> None:
    assert said(replace(FIT, clock=Offset(1.2, 0.3))) is None


def test_what_set_up_brings_is_not_asked_for() -> None:
    assert said(replace(FIT, has_mininet=False, exists=False, has_environment=False, digest=None)) is None


def test_two_names_of_one_machine_are_noticed() -> None:
    other = replace(FIT, server=Server("c", "c"))
    assert "servers b and c have the same address, 10.0.0.2" in (twice([FIT, other]) or "")
    assert twice([FIT, replace(other, server=Server("c", "c", address="10.0.0.3"))]) is None


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (
            255,
            "ssh: connect to host b port 22: Connection refused",
            "can't be reached (ssh: connect to host b",
        ),
        (255, "", "can't be reached (it said nothing)"),
        (255, "Host key verification failed.", "its host key is not known here"),
        (255, "root@b: Permission denied (publickey).", "lets nobody in without a password"),
        (127, "sh: 1: /usr/bin/python3: not found", "has no /usr/bin/python3"),
    ],
)
def test_what_ssh_says_becomes_what_to_do(code: int, words: str, expected: str) -> None:
    assert expected in unreachable(OURS, code, words)


def test_cores_of_the_file_are_the_most() -> None:
    assert FIT.usable_cores == 8
    assert replace(FIT, server=Server("b", "b", cores=2)).usable_cores == 2
    assert replace(FIT, server=Server("b", "b", cores=64)).usable_cores == 8
