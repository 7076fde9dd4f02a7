"""Plans: what is written is what the generator reads, and what it refuses."""

import struct
import subprocess
from pathlib import Path

import pytest

from experiments.bench.switch import native_programs
from experiments.bench.switch.plan import Answers, Copy, Frame, Plan, encode

FRAMES = [Frame(0, bytes(90)), Frame(1, bytes(90))]


def load(plan: bytes, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = directory / "plan"
    path.write_bytes(plan)
    command = [str(native_programs.program("load")), str(path), *(arguments or ("1", "1", "0", "lo"))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_layout() -> None:
    answers = Answers(1, b"answer", (Copy(26, 30, 4),))
    data = encode(Plan(2, FRAMES, 70, 602, key_offset=46, group=2, answers=answers))
    assert struct.unpack_from("<8s9I", data) == (b"weirplan", 2, 2, 70, 46, 602, 1, 6, 1, 2)
    assert struct.unpack_from("<HHHxx", data, 44) == (26, 30, 4)
    assert data[52:58] == b"answer"
    assert struct.unpack_from("<HH", data, 58) == (0, 90)
    assert len(data) == 58 + 2 * (4 + 90)


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        (Plan(0, FRAMES, 70, 602), "1 to 16 ports, not 0"),
        (Plan(2, [], 70, 602), "0 frames"),
        (Plan(2, FRAMES[:1], 70, 602, group=2), "1 frames are not whole groups of 2"),
        (Plan(1, FRAMES, 70, 602), "a frame of 90 bytes for port 1"),
        (Plan(2, FRAMES, 87, 602), "a frame of 90 bytes for port 0"),
    ],
)
def test_unsound_plans_are_refused(plan: Plan, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode(plan)


def test_the_generator_refuses_what_is_no_plan(tmp_path: Path) -> None:
    sound = encode(Plan(1, FRAMES[:1], 70, 602))
    for damaged, complaint in (
        (b"", "ends too early"),
        (sound[:-1], "ends too early"),
        (b"X" + sound[1:], "not a plan"),
        (sound[:8] + struct.pack("<I", 99) + sound[12:], "not a plan"),
    ):
        done = load(damaged, tmp_path)
        assert done.returncode == 2
        assert complaint in done.stderr


def test_the_generator_wants_an_interface_for_each_port(tmp_path: Path) -> None:
    done = load(encode(Plan(1, FRAMES[:1], 70, 602)), tmp_path, "1", "1000", "0", "lo", "lo")
    assert done.returncode == 2
    assert "the plan has 1 ports, but 2 interfaces are given" in done.stderr
