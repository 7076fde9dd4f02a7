"""How a failure of the C compiler is reported."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from v1model.backend import building
from v1model.errors import CompileError

DOUBLING = "#define m0 x\n" + "".join(f"#define m{n} m{n - 1} m{n - 1}\n" for n in range(1, 60)) + "m59\n"


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize("limit", ["-t 1", f"-v {96 << 10}"])
def test_what_takes_too_much_is_refused_in_a_plain_sentence(tmp_path: Path, limit: str) -> None:
    """It was called an internal error of the C compiler, to be reported to its authors."""
    source = tmp_path / "x.c"
    source.write_text(DOUBLING)
    compiling = subprocess.Popen(
        ["sh", "-c", f"ulimit {limit}; exec cc -fsyntax-only {source}"], stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(CompileError, match=r"^the program takes more time or memory to compile than"):
        building.check(compiling, "the program")


def test_another_failure_is_said_in_the_compilers_words() -> None:
    failing = subprocess.Popen(
        ["sh", "-c", "echo 'x.c:1: why not' >&2; exit 1"], stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(CompileError, match=r"the C compiler failed on the program:\nx.c:1: why not"):
        building.check(failing, "the program")
