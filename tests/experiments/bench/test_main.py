"""`make bench WHAT=...` runs the benchmark that is named, and refuses names that do not exist."""

from importlib import import_module

import pytest

from experiments.bench.__main__ import BENCHMARKS, main


@pytest.mark.parametrize("what", BENCHMARKS)
def test_every_benchmark_has_a_program_with_help(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(import_module(f"experiments.bench.{what}.__main__").main)
    with pytest.raises(SystemExit) as ended:
        main([what, "--help"])
    assert ended.value.code == 0
    assert "RESULTS" in capsys.readouterr().out.upper()


def test_a_benchmark_that_is_not_there_is_refused_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["host"]) == 2
    assert "did you mean hosts?" in capsys.readouterr().err
    monkeypatch.setenv("WEIR_WHAT", "nothing")
    assert main([]) == 2
    assert "there is no benchmark 'nothing'" in capsys.readouterr().err


def test_without_a_name_all_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WHAT", raising=False)
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in BENCHMARKS)
