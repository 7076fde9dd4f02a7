"""C file in which the user implements a program's own externs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExternSource:
    """Text of the user's C file.

    It becomes part of the program's C, so that the C compiler can inline it; its errors name `path`.
    """

    path: str
    code: str

    @classmethod
    def read(cls, path: Path) -> ExternSource:
        try:
            return cls(str(path), path.read_text(errors="replace"))
        except OSError as error:
            raise CompileError(f"{path}: {error.strerror}", hint="give the C file of the externs") from error

    def text(self) -> str:
        """Return the code between line markers, so that the C compiler names the user's lines."""
        name = self.path.replace("\\", "\\\\").replace('"', '\\"')
        return f'#line 1 "{name}"\n{self.code}\n#line 1 "program.c"'
