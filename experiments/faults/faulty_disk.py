"""Disk that fails on request: a C library, which a process gets through LD_PRELOAD."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.errors import ExperimentError

SOURCE = Path(__file__).with_name("faulty_disk.c")
FULL_HALFWAY, TORN, SLOW, NO_FAILURE = "h", "t", "w", "-"
"""Letters of some failures of the disk; NO_FAILURE ends them. faulty_disk.c has all letters."""


@dataclass(frozen=True, slots=True)
class FaultyDisk:
    """Faulty disk of a process: the library, and the file whose letter says how the disk fails."""

    library: Path
    control: Path

    def set_failure(self, letter: str) -> None:
        """Let the disk fail in this way from now on."""
        self.control.write_text(letter)

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that starts a process on this disk."""
        return ["env", f"LD_PRELOAD={self.library}", f"FAULTY_DISK={self.control}", *command]


def build(directory: Path) -> FaultyDisk:
    """Compile the library into a folder; raises ExperimentError if there is no C compiler or it fails."""
    disk = FaultyDisk(directory / "faulty_disk.so", directory / "faulty_disk.letter")
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]
    try:
        subprocess.run(
            [*command, str(disk.library), str(SOURCE), "-ldl"], check=True, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise ExperimentError("a faulty disk needs a C compiler (cc)") from None
    except subprocess.CalledProcessError as error:
        raise ExperimentError(f"{SOURCE.name}: {error.stderr.strip()}") from None
    disk.set_failure(NO_FAILURE)
    return disk
