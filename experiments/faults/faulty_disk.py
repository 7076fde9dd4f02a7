"""A disk that fails on request, for a process that is started with it: a library for LD_PRELOAD, in C."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.errors import ExperimentError

SOURCE = Path(__file__).with_name("faulty_disk.c")
FULL_HALFWAY, TORN, SLOW, WHOLE = "h", "t", "w", "-"
"""What befalls the disk; faulty_disk.c has all of them."""


@dataclass(frozen=True, slots=True)
class FaultyDisk:
    """The library, and the file that says what befalls the disk of whoever is started with it."""

    library: Path
    control: Path

    def befall(self, letter: str) -> None:
        """Have this befall the disk from now on."""
        self.control.write_text(letter)

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that starts a process on this disk."""
        return ["env", f"LD_PRELOAD={self.library}", f"FAULTY_DISK={self.control}", *command]


def build(directory: Path) -> FaultyDisk:
    """Compile the library into a folder; raises ExperimentError if there is no C compiler, or it refuses."""
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
    disk.befall(WHOLE)
    return disk
