from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from v1model.errors import CompileError
from v1model.frontend.lexer import (
    END,
    END_PRAGMA,
    IDENTIFIER,
    INTEGER,
    KEYWORDS,
    PRAGMA,
    RIGHT_SHIFT_HALF,
    STRING,
    tokenize,
)
from v1model.frontend.parser.expressions import PRECEDENCE
from v1model.frontend.preprocess import preprocess

if TYPE_CHECKING:
    from pathlib import Path


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(text, "test.p4")][:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bit<8> x", ["bit", "<", INTEGER, ">", IDENTIFIER]),
        ("a &&& b & c && d", [IDENTIFIER, "&&&", IDENTIFIER, "&", IDENTIFIER, "&&", IDENTIFIER]),
        ("1..2", [INTEGER, "..", INTEGER]),
        ("...", ["..."]),
        ("a |+| b |-| c", [IDENTIFIER, "|+|", IDENTIFIER, "|-|", IDENTIFIER]),
        ("a |+|= b |-|= c", [IDENTIFIER, "|+|=", IDENTIFIER, "|-|=", IDENTIFIER]),
        ("a >> b", [IDENTIFIER, RIGHT_SHIFT_HALF, ">", IDENTIFIER]),
        ("a >>= b", [IDENTIFIER, RIGHT_SHIFT_HALF, ">=", IDENTIFIER]),
        ("a > > b", [IDENTIFIER, ">", ">", IDENTIFIER]),
        ("a[0 +: 8]", [IDENTIFIER, "[", INTEGER, "+:", INTEGER, "]"]),
        ("a ++ b", [IDENTIFIER, "++", IDENTIFIER]),
        ("{#}", ["{", "#", "}"]),
        ("header headers", ["header", IDENTIFIER]),
        ("_ _a", ["_", IDENTIFIER]),
        (r'"a\"b"', [STRING]),
        ('"two\nlines"', [STRING]),
        ("8w0xFF 4s7 0b1010_1010 0o17 0d10", [INTEGER] * 5),
        ("@pragma foo bar\nx", [PRAGMA, IDENTIFIER, IDENTIFIER, END_PRAGMA, IDENTIFIER]),
        ("@pragmatic", ["@", IDENTIFIER]),
    ],
)
def test_kinds(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


def test_empty() -> None:
    assert [token.kind for token in tokenize("", "test.p4")] == [END]


def test_string_that_does_not_end() -> None:
    with pytest.raises(CompileError, match="does not end"):
        tokenize('x "abc\n', "test.p4")


def test_line_markers() -> None:
    tokens = tokenize('# 7 "dir/a.p4"\nx\n\ny\n# 1 "b.p4" 1\nz', "test.p4")
    places = [(token.span.file, token.span.line) for token in tokens[:-1]]
    assert places == [("dir/a.p4", 7), ("dir/a.p4", 9), ("b.p4", 1)]


def test_line_after_string_of_two_lines() -> None:
    tokens = tokenize('"a\nb" x\ny', "test.p4")
    assert [token.span.line for token in tokens[:-1]] == [1, 2, 3]


def test_columns_are_those_of_the_source(tmp_path: Path) -> None:
    """Also where the preprocessor removed a comment, shrank white space or expanded a macro."""
    path = tmp_path / "a.p4"
    path.write_text("#define ONE 1 + 0\na   /* why */ b\nc   ONE   d\n\te\n")
    tokens = tokenize(preprocess(path), str(path), open_files=True)[:-1]
    columns = {token.text: (token.span.line, token.span.column) for token in tokens}
    assert columns["a"] == (2, 1)
    assert columns["b"] == (2, 15)
    assert columns["c"] == (3, 1)
    assert columns["1"] == (3, 1)
    assert columns["d"] == (3, 11)
    assert columns["e"] == (4, 2)


WORDS = st.one_of(
    st.sampled_from(sorted(KEYWORDS)),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
    st.from_regex(r"([0-9]{1,3}[ws])?(0[xX][0-9a-fA-F]{1,8}|[0-9]{1,8})", fullmatch=True),
    st.sampled_from(sorted(set(PRECEDENCE) - {">>"} | set("~(){}[]!:,?.=;"))),
    st.sampled_from(["&&&", "...", ".."]),
)


@given(st.lists(WORDS, max_size=30))
def test_texts_survive(words: list[str]) -> None:
    tokens = tokenize(" ".join(words), "test.p4")
    assert [token.text for token in tokens[:-1]] == words
    again = tokenize(" ".join(token.text for token in tokens[:-1]), "test.p4")
    assert [token.kind for token in again] == [token.kind for token in tokens]


@given(st.text(max_size=60))
def test_any_text_is_tokens_or_refused(text: str) -> None:
    with suppress(CompileError):
        assert tokenize(text, "test.p4")[-1].kind == END


def test_a_hash_that_is_no_directive_begins_a_comment() -> None:
    text = '# 7 "a.p4"\nconst\n# a note of 3 words\n#  12 is a number\n  # "another\nx {\n#}'
    tokens = tokenize(text, "test.p4")[:-1]
    assert [(token.text, token.span.line) for token in tokens] == [
        ("const", 7),
        ("x", 11),
        ("{", 11),
        ("#", 12),
        ("}", 12),
    ]
