"""Options of p4c that scripts give: as p4c-bm2-ss takes them, and as its driver `p4c` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from google.protobuf import json_format, text_format

from tests.v1model.refused_program import program
from v1model.p4c import OK, REFUSED_OPTIONS, USAGE, main
from v1model.protos.p4.config.v1 import p4info_pb2


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program in an empty folder, in which the compiler runs."""
    monkeypatch.chdir(tmp_path)
    Path("prog.p4").write_text(program())
    return "prog.p4"


def files() -> list[str]:
    return sorted(path.as_posix() for path in Path().rglob("*.json"))


def test_the_config_goes_into_a_folder_that_is_there_or_ends_in_a_slash(source: str) -> None:
    Path("build").mkdir()
    for out in ("build", "new/", "one.json"):
        assert main(["-o", out, source]) == OK
    assert files() == ["build/prog.json", "new/prog.json", "one.json"]
    assert main([source]) == OK
    assert len(files()) == 3


def test_called_as_p4c_it_writes_into_a_folder_like_p4c_s_driver(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/bin/p4c"])
    assert main(["--target", "bmv2", "--arch", "v1model", source]) == OK
    assert main(["-b", "bmv2", "-a", "v1model", "-o", "out", source]) == OK
    assert files() == ["out/prog.json", "prog.json"]


def test_the_older_options_for_p4info(source: str) -> None:
    info = p4info_pb2.P4Info()
    assert main(["--p4runtime-file", "a", source]) == OK
    info.ParseFromString(Path("a").read_bytes())
    assert main(["--p4runtime-file", "b", "--p4runtime-format", "text", source]) == OK
    assert text_format.Parse(Path("b").read_text(), p4info_pb2.P4Info()) == info
    assert main(["--p4runtime-file", "c", "--p4runtime-format", "json", source]) == OK
    assert json_format.Parse(Path("c").read_text(), p4info_pb2.P4Info()) == info


@pytest.mark.parametrize("option", ["--Wwarn", "--Winfo=unused", "--disable-annotations", "-O2", "-T4"])
def test_options_without_effect_do_not_take_the_program_for_their_value(source: str, option: str) -> None:
    assert main([option, source]) == OK


@pytest.mark.parametrize("option", REFUSED_OPTIONS)
def test_what_is_not_supported_is_said(source: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([option, "x.txt", source])
    assert caught.value.code == USAGE
    assert f"{option} is not supported: {REFUSED_OPTIONS[option]}" in capsys.readouterr().err
