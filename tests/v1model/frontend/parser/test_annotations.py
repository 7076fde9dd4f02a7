from __future__ import annotations

import pytest

from tests.v1model.frontend.sources import declared, parsed
from v1model.errors import CompileError
from v1model.frontend import ast


def annotation(text: str) -> ast.Annotation:
    found = declared(parsed(f"{text}\nconst bit<8> x = 1;"), "x").annotations[0]
    assert isinstance(found, ast.Annotation)
    return found


def test_plain() -> None:
    found = annotation("@hidden")
    assert (found.name, found.expressions, found.pairs, found.text) == ("hidden", [], {}, "")


def test_keyword_as_name() -> None:
    assert annotation("@table").name == "table"


def test_structured() -> None:
    assert [e.value for e in annotation("@list[1, 2,]").expressions] == [1, 2]  # type: ignore[attr-defined]
    assert set(annotation('@info[a = 1, key = "x"]').pairs) == {"a", "key"}
    assert annotation("@empty[]").expressions == []


def test_unstructured_that_is_expressions() -> None:
    found = annotation('@name("a.b")')
    assert isinstance(found.expressions[0], ast.StringLiteral)
    assert found.text == '"a.b"'
    assert len(annotation("@field_list(1, 2)").expressions) == 2
    assert list(annotation('@pkginfo(name = "x", version = "1")').pairs) == ["name", "version"]


def test_unstructured_free_text() -> None:
    found = annotation("@brief(it's (any) table { of } tokens == fine)")
    assert found.expressions == []
    assert found.text == "it ' s ( any ) table { of } tokens == fine"


def test_string_over_lines() -> None:
    assert annotation('@restrict("\n  a == 1;\n  b != 2\n")').text.count("\n") == 3


def test_pragma_ends_with_its_line() -> None:
    found = annotation("@pragma size 12 0x1")
    assert (found.name, found.text) == ("size", "12 0x1")


@pytest.mark.parametrize("text", ["@", "@name(", "@name(()", "@name[1", "@name[a = ]", "@1"])
def test_refused(text: str) -> None:
    with pytest.raises(CompileError):
        annotation(text)
