"""The command refuses what it can't use before it computes anything."""

from pathlib import Path

import pytest

from experiments.validate.__main__ import main


def test_a_trace_that_is_not_there_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--part=literature",
        f"--trace={tmp_path / 'missing.jsonl'}",
        f"--results={tmp_path / 'out'}",
    ]
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert "error:" in printed.err
    assert "simulated" not in printed.out
    assert not (tmp_path / "out").exists()
