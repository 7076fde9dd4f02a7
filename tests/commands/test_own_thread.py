"""What is raised or returned in a thread of its own comes back."""

from threading import get_ident

import pytest

from commands.own_thread import in_own_thread


def test_what_it_returns() -> None:
    assert in_own_thread(lambda: 7) == 7
    assert len({in_own_thread(get_ident), get_ident()}) == 2


def test_what_it_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda: 1 // 0)
