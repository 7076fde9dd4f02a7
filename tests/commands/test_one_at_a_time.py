"""Commands that want the same folder of results go one after the other."""

import threading
from pathlib import Path

from commands.one_at_a_time import one_at_a_time


def test_a_second_command_says_that_it_waits_and_goes_on_when_the_first_has_ended(tmp_path: Path) -> None:
    folder, said, waits, order = tmp_path / "results" / "run", list[str](), threading.Event(), list[str]()

    def second() -> None:
        def say(text: str) -> None:
            said.append(text)
            waits.set()

        with one_at_a_time(folder, say):
            order.append("second")

    with one_at_a_time(folder, said.append):
        assert said == []
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(30)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
    assert said == [
        f"another command uses {folder}: waiting until it has ended (RESULTS=folder takes another)"
    ]


def test_other_folders_are_others(tmp_path: Path) -> None:
    with one_at_a_time(tmp_path / "a", lambda _: None), one_at_a_time(tmp_path / "b", lambda _: None):
        pass
