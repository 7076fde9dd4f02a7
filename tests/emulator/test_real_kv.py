"""MODEL=folder: what is refused, and with what advice. The run itself is in make test-engines."""

from pathlib import Path

import pytest

from commands.errors import OptionError
from emulator.options import parse_options
from emulator.real_kv import RealKvError, compute_kv
from emulator.scenario import make_scenario
from workload.cost import DEFAULT_MODEL


def test_a_folder_with_a_model_keeps_the_presets_times(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    options = parse_options(["--model", str(tmp_path)], "run", "")
    assert (options.model_choice.preset, options.model_choice.folder) == (DEFAULT_MODEL, tmp_path)
    assert parse_options(["--model", "qwen3-32b"], "run", "").model_choice == ("qwen3-32b", None)


def test_what_is_neither_preset_nor_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="or a folder with a model's config"):
        parse_options(["--model", str(tmp_path)], "run", "")


def test_without_the_engines_environment_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    scenario = make_scenario(parse_options(["--model", str(tmp_path), "--requests", "5"], "run", ""))
    with pytest.raises(RealKvError, match="scripts/setup-engines") as caught:
        compute_kv(scenario, tmp_path, tmp_path, lambda *_: None, tmp_path / ".venv-engines/bin/python")
    assert ".venv-engines is missing" in str(caught.value)


def test_a_step_that_fails_is_told_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    scenario = make_scenario(parse_options(["--model", str(tmp_path), "--requests", "5"], "run", ""))
    fails = tmp_path / "python"
    for code, said in ((3, "the model is too small"), (1, "Traceback: boom")):
        fails.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit {code}\n")
        fails.chmod(0o755)
        with pytest.raises(RealKvError, match=said):
            compute_kv(scenario, tmp_path, tmp_path, lambda *_: None, fails)
