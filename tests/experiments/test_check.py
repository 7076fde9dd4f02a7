"""What a command is told is read as a whole before anything is installed or compiled for it."""

import pytest

from experiments.check import main


@pytest.mark.parametrize(
    ("command", "variables", "complaint"),
    [
        ("engines", {"OWN_BLOCKS": "33"}, "OWN_BLOCKS must be at least 34"),
        ("run", {"STORES": "0", "PUSH": "1"}, "PUSH=yes: pushes blocks"),
        ("run", {"HOSTS": "63"}, "61 nodes (HOSTS), not 63"),
        ("bench switch", {"ROUNDS": "0"}, "ROUNDS: must be from 1 to 100, not 0"),
    ],
)
def test_what_does_not_go_together_is_refused(
    command: str, variables: dict[str, str], complaint: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main(command.split()) == 0
    for name, value in variables.items():
        monkeypatch.setenv(f"WEIR_{name}", value)
    assert main(command.split()) == 2
    assert complaint in capsys.readouterr().err
