"""Random programs mean the same to the embedded switch, to BMv2 and to the specification."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance import bmv2
from tests.differential.expressions import State
from tests.differential.programs import Generator, fields_of, frame_of, frames
from v1model.compile import compile_p4
from v1model.switch import Switch

HARNESS = Path(__file__).parents[1] / "conformance" / "harness"
PACKETS = 60
PROGRAMS = 6  # without BMv2; each takes a second or two to compile
PROGRAMS_ON_BMV2 = 20


def write_program(rng: random.Random, folder: Path) -> tuple[Path, Callable[[State], None]]:
    text, meaning = Generator(rng).program()
    for name in ("shape.p4", "main.p4"):
        shutil.copy(HARNESS / name, folder)
    path = folder / "program.p4"
    path.write_text(text)
    return path, meaning


def meant(meaning: Callable[[State], None], frame: bytes) -> bytes:
    state = fields_of(frame)
    meaning(state)
    return frame_of(state)


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_the_embedded_switch_does_what_a_program_means(tmp_path: Path, seed: str, number: int) -> None:
    rng = random.Random(f"{seed} {number}")
    path, meaning = write_program(rng, tmp_path)
    with Switch(compile_p4(path)) as switch:
        for frame in frames(rng, PACKETS):
            (output,) = switch.inject(0, frame)
            assert output.data.hex() == meant(meaning, frame).hex(), f"{frame.hex()}\n{path.read_text()}"


@pytest.mark.bmv2
@pytest.mark.skipif(not bmv2.is_present(), reason="p4c-bm2-ss and simple_switch_grpc are not on PATH")
@pytest.mark.parametrize("number", range(PROGRAMS_ON_BMV2))
def test_bmv2_does_the_same(tmp_path: Path, seed: str, number: int) -> None:
    rng = random.Random(f"{seed} bmv2 {number}")
    path, meaning = write_program(rng, tmp_path)
    sent = frames(rng, PACKETS)
    with Switch(compile_p4(path)) as switch:
        ours = [switch.inject(0, frame)[0].data.hex() for frame in sent]
    try:
        with bmv2.Bmv2Target(path) as reference:
            for frame in sent:
                reference.send(0, frame)
            theirs = [data.hex() for data in reference.received({1: len(sent)})[1]]
    except bmv2.NotPortableError as error:
        reasons = [line for line in str(error).splitlines() if "error" in line.lower()]
        pytest.skip(reasons[0] if reasons else str(error))
    assert ours == theirs, path.read_text()
    assert ours == [meant(meaning, frame).hex() for frame in sent]
