"""Tokens of P4_16 from preprocessed text, each with its place in the user's files."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend.ast import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

# The kinds of tokens that are not their own text.
IDENTIFIER, INTEGER, STRING, END = "identifier", "integer", "string literal", "end of file"
# A `>` directly followed by another `>`: the two close two type argument lists, or shift.
RIGHT_SHIFT_HALF = ">>"
PRAGMA, END_PRAGMA = "@pragma", "end of @pragma"

KEYWORDS = frozenset(
    """abstract action actions apply bool bit break const continue control default else entries enum error
    exit extern false for header header_union if in inout int key list match_kind out package parser priority
    return select state string struct switch table this transition true tuple type typedef varbit value_set
    void _""".split()  # noqa: SIM905 - one literal a keyword would be fifty lines
)

_LINE_MARKER = re.compile(r'# (\d{1,9}) "((?:[^"\\]|\\.)*+)"')
_HASH_COMMENT = re.compile(r"\s*#\s")  # p4c takes a line without a directive for a comment
MAX_SOURCE_FILE_BYTES = 16 << 20
MAX_TOKENS = 1 << 19  # some 50,000 lines
_END_OF_STRING = re.compile(r'(?:[^"\\]|\\.)*+"')
_TOKEN = re.compile(
    r"""\s+
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<integer>(?:[0-9]+[ws])?(?:0[xX][0-9a-fA-F_]+|0[dD][0-9_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*))
    |(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<pragma>@pragma\b)
    |(?P<punctuation>&&&|\.\.\.|\.\.|\|\+\|=|\|-\|=|\|\+\||\|-\||<<=|<<|&&|\|\||==|!=|>=|<=|\+\+|\+:
        |[-+*/%&|^]=|[-+*/%&|^~(){}\[\]<>!:,?.=;@#])
    |(?P<other>.)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token; for keywords and punctuation `kind` is the text itself."""

    kind: str
    text: str
    span: Span


def tokenize(text: str, main_file: str, *, open_files: bool = False) -> list[Token]:
    """Return all tokens of preprocessed `text`, with an END token last.

    Columns are those of the files that line markers name if `open_files`, else those of `text`. Whoever made
    the text could name any file of this machine.
    """
    tokens: list[Token] = []
    file, number = main_file, 0
    lines = iter(text.split("\n"))
    for line in lines:
        number += 1
        if line.startswith("# ") and (marker := _LINE_MARKER.match(line)):
            number, file = int(marker[1]) - 1, marker[2].replace("\\\\", "\\").replace('\\"', '"')
        elif line and not line.isspace() and not _HASH_COMMENT.match(line):
            whole = _with_rest_of_string(line, lines)
            source = source_line(file, number) if open_files else whole
            _tokenize_line(whole, source, Span(file, number, 1), tokens)
            if len(tokens) > MAX_TOKENS:
                raise CompileError(f"a program of more than {MAX_TOKENS} tokens", tokens[-1].span)
            number += whole.count("\n")
    tokens.append(Token(END, "", tokens[-1].span if tokens else Span(file, max(number, 1), 1)))
    return tokens


def _with_rest_of_string(line: str, following: Iterator[str]) -> str:
    """Return `line`, joined with those after it if a string continues there, as in annotations."""
    start = 0
    while '"' in line and (opened := _open_quote(line, start)) is not None:
        parts = [line]
        for rest in following:
            parts.append(rest)
            if _END_OF_STRING.match(rest):
                break
        else:
            return line  # the string never ends
        line, start = "\n".join(parts), opened
    return line


def _open_quote(line: str, start: int) -> int | None:
    """Return where a string begins that does not end in `line`; `start` is the start of a token."""
    return next((match.start() for match in _TOKEN.finditer(line, start) if match[0] == '"'), None)


def _tokenize_line(line: str, source: str, place: Span, tokens: list[Token]) -> None:
    """Append the tokens of one line, or of the several that a string joins.

    `source` is the line as the user wrote it; `place` is where that begins.
    """
    columns = None if source.startswith(line) else _source_columns(line, source)
    in_pragma = False
    number, counted = place.line, 0
    for match in _TOKEN.finditer(line):
        group = match.lastgroup
        if group is None:
            continue
        text, start = match[0], match.start()
        number += line.count("\n", counted, start)
        counted = start
        column = columns.get(start, 1) if columns else start + 1
        span = Span(place.file, number, column, len(text))
        kind = _kind(group, text, line, match.end(), span)
        in_pragma = in_pragma or kind == PRAGMA
        tokens.append(Token(kind, text, span))
    if in_pragma:
        tokens.append(Token(END_PRAGMA, "", tokens[-1].span))


def _kind(group: str, text: str, line: str, end: int, span: Span) -> str:
    if group == "word":
        return text if text in KEYWORDS else IDENTIFIER
    if group == "integer":
        return INTEGER
    if group == "string":
        return STRING
    if text == '"':
        raise CompileError("this string does not end", span, 'close it with "')
    if text == ">" and line.startswith(">", end):
        return RIGHT_SHIFT_HALF
    return text


def _source_columns(line: str, source: str) -> dict[int, int]:
    """Return the columns in the user's line of the tokens of a line that the preprocessor changed.

    It shrinks white space and comments, which moves tokens. It expands macros, whose tokens get the column of
    the last token before them that the user's line has.
    """
    places: dict[str, list[int]] = {}
    for match in _TOKEN.finditer(source):
        if match.lastgroup:
            places.setdefault(match[0], []).append(match.start() + 1)
    columns: dict[int, int] = {}
    column, behind = 1, 0
    for match in _TOKEN.finditer(line):
        if match.lastgroup:
            same = places.get(match[0], [])
            found = bisect_right(same, behind)
            if found < len(same):
                column = behind = same[found]
            columns[match.start()] = column
    return columns


def source_line(file: str, number: int) -> str:
    """Return line `number` (1-based) of a source file of the user's, or "" if there is none."""
    lines = _source_lines(file)
    return lines[number - 1] if 0 < number <= len(lines) else ""


@cache
def _source_lines(file: str) -> list[str]:
    """Return the lines of a regular file; others could block or be endless."""
    try:
        # O_NONBLOCK: opening a FIFO waits for a writer.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                return []
            return source.read(MAX_SOURCE_FILE_BYTES).decode(errors="replace").split("\n")
    except (OSError, ValueError):  # ValueError: a name with a null byte
        return []


def forget_sources() -> None:
    """Drop the cached source files, which may have changed since."""
    _source_lines.cache_clear()
