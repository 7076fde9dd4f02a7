"""Each file below bad/ is refused where and as its first line says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.v1model.frontend.sources import BAD
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import load, render

if TYPE_CHECKING:
    from pathlib import Path

# "// error LINE:COLUMN: message", "unsupported" for what is legal P4; a file name where the place
# is in an included file.
EXPECTATION = re.compile(r"// (?P<kind>error|unsupported) (?P<place>\S+): (?P<message>.*)")


@pytest.mark.parametrize("path", sorted(BAD.glob("*.p4")), ids=lambda path: path.stem)
def test_refused(path: Path) -> None:
    expected = EXPECTATION.fullmatch(path.read_text().splitlines()[0])
    assert expected is not None
    with pytest.raises(CompileError) as caught:
        load(path)
    error = caught.value
    assert error.span is not None
    is_here = error.span.file == str(path)
    place = f"{error.span.line}:{error.span.column}" if is_here else error.span.file.rpartition("/")[2]
    assert (place, error.message) == (expected["place"], expected["message"])
    assert [other.message for other in error.others] == [], "one mistake, one message"
    assert isinstance(error, UnsupportedError) == (expected["kind"] == "unsupported")


def test_rendered_with_line_and_caret() -> None:
    path = BAD / "field_unknown.p4"
    with pytest.raises(CompileError) as caught:
        load(path)
    lines = render(caught.value).splitlines()
    assert lines[0] == f"{path}:4:12: error: struct S has no member 'sorce'"
    assert lines[1:] == ["    return s.sorce;", "           ^~~~~~~", "hint: did you mean 'source'?"]
