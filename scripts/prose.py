"""Checker of documents and of docstrings' first lines for plain prose.

    prose.py                    exit code 1 and one line for each finding, 0 without any
    prose.py --count            words and sentences of each document

Sentences are split by sentencex. The mean length is that of paragraphs and lists; the longest sentence may
also stand in a table. Code is left out. Refused words are those in scripts/prose.toml and those that
proselint finds.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import sentencex
from markdown_it import MarkdownIt
from markdown_it.token import Token
from proselint.checks import __register__ as CHECKS
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parent.parent
RULES = tomllib.loads((ROOT / "scripts" / "prose.toml").read_text(encoding="utf-8"))
WORDS, DOCUMENT_WORDS, REVISIONS = (
    {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in RULES[table].items()}
    for table in ("words", "document_words", "revisions")
)
RECORDS = ("docs/lab/record.md", "docs/lab/engines-attacked.md")
"""Lists of defects, which are not checked."""
NOTEBOOK = "docs/lab/"
"""Folder whose pages may name revisions."""
GENERATED = "do not edit"
"""Words at the top of a page that is generated from declarations; such pages are not checked."""
OTHERS = ("README.md", "CONTRIBUTING.md")
MARKDOWN = MarkdownIt("commonmark").enable("table")
BREAK = re.compile(r"(?<=:)\s+(?=[A-Z])|(?<=\d s\.)\s+(?=[A-Z`])")


@dataclass(frozen=True)
class Passage:
    """Paragraph, list item or table cell, without code."""

    line: int
    text: str
    is_prose: bool
    """Whether the passage has sentences: cells and headings have none."""


def main(arguments: list[str]) -> int:
    """Print the findings and return the exit code."""
    pages = documents()
    if "--count" in arguments:
        for page in pages:
            prose = [passage.text for passage in passages(read(page)) if passage.is_prose]
            lengths = [count(sentence) for text in prose for sentence in sentences(text)]
            mean = sum(lengths) / max(1, len(lengths))
            words = len(read(page).split())
            print(f"{words:6} words, {len(lengths):4} sentences of {mean:4.1f} words: {page}")
    findings = [*in_documents(pages), *in_docstrings(sources())]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def listed(*patterns: str) -> list[str]:
    """Return the files of the repository that match the patterns, new ones included."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({name for name in names if (ROOT / name).is_file()})


def documents() -> list[str]:
    pages = listed("docs/*.md", "docs/**/*.md", *OTHERS)
    own_pages = [page for page in pages if page not in RECORDS]
    return [page for page in own_pages if GENERATED not in read(page)[:400]]


def sources() -> list[str]:
    return [name for name in listed("*.py") if not name.startswith("tests/") and "_pb2" not in name]


def in_documents(pages: Iterable[str]) -> Iterator[str]:
    """Yield the findings in the pages."""
    CheckRegistry().register_many(CHECKS)
    for page in pages:
        found = passages(read(page))
        yield from lengths_in(page, found)
        words = WORDS | (DOCUMENT_WORDS if page.startswith(NOTEBOOK) else DOCUMENT_WORDS | REVISIONS)
        for passage in found:
            yield from words_in(f"{page}:{passage.line}", passage.text, words)
        yield from proselint_in(page, found)


def in_docstrings(names: Iterable[str]) -> Iterator[str]:
    """Yield the findings in first lines of docstrings."""
    for name in names:
        for line, text, is_of_function in first_lines(read(name)):
            place = f"{name}:{line}"
            yield from words_in(place, without_code(text), WORDS)
            if count(text) > RULES["most_words"]:
                yield f"{place}: a first line of {count(text)} words: at most {RULES['most_words']}"
            opening = text.split()[0].rstrip(",:;.")
            if opening in RULES["openings"] or (is_of_function and opening in RULES["openings_of_functions"]):
                does = "what it does or returns" if is_of_function else "the noun that it is about"
                yield f"{place}: {opening!r} begins a docstring: begin with {does}"


def lengths_in(page: str, found: list[Passage]) -> Iterator[str]:
    lengths: list[int] = []
    for passage in found:
        for sentence in sentences(passage.text):
            length = count(sentence)
            if passage.is_prose:
                lengths.append(length)
            if length > RULES["most_words"]:
                most = f"{length} words, at most {RULES['most_words']}"
                yield f"{page}:{passage.line}: a sentence of {most}: {sentence[:60]} …"
    if lengths and sum(lengths) / len(lengths) > RULES["mean_words"]:
        mean = sum(lengths) / len(lengths)
        yield f"{page}: sentences have {mean:.1f} words in the mean, at most {RULES['mean_words']:g}"


def words_in(place: str, text: str, words: Mapping[re.Pattern[str], str]) -> Iterator[str]:
    for pattern, instead in words.items():
        for match in pattern.finditer(text):
            yield f"{place}: {match[0]!r}: write {instead}"


def proselint_in(page: str, found: list[Passage]) -> Iterator[str]:
    lines = [""] * (1 + max((passage.line for passage in found), default=0))
    for passage in found:
        if passage.is_prose:
            lines[passage.line] += passage.text + " "
    for result in LintFile(page, "\n".join(lines)).lint():
        check = result.check_result.check_path.partition(".")[0]
        if check in RULES["proselint"]:
            yield f"{page}:{result.pos[0] - 1}: {result.check_result.message}"


def passages(text: str) -> list[Passage]:
    """Return the readable parts of a Markdown text with their lines."""
    found: list[Passage] = []
    line, cell = 0, False
    heading = False
    for token in MARKDOWN.parse(text):
        if token.map:
            line = token.map[0] + 1
        if token.type in ("td_open", "th_open", "td_close", "th_close"):
            cell = token.type.endswith("_open")
        elif token.type in ("heading_open", "heading_close"):
            heading = token.type == "heading_open"
        elif token.type == "inline" and not token.content.startswith(":::"):  # mkdocstrings replaces it
            found.append(Passage(line, words_of(token), not cell and not heading))
    return found


def words_of(token: Token) -> str:
    """Return the text of an inline token; each piece of code becomes one word."""
    parts: list[str] = []
    for child in token.children or ():
        if child.type == "code_inline":
            parts.append("`" + re.sub(r"\W+", "", child.content) + "`")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type == "text":
            parts.append(child.content)
    return "".join(parts)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a passage; a capital letter after a colon begins a new one.

    sentencex takes the "s." of a time at a sentence's end for an abbreviation.
    """
    for sentence in sentencex.segment("en", text):
        yield from (part for part in BREAK.split(sentence.strip()) if part)


def count(text: str) -> int:
    """Return the number of words that have a letter or a digit."""
    return sum(re.search(r"\w", word) is not None for word in text.split())


def without_code(text: str) -> str:
    return re.sub(r"`[^`]*`", "code", text)


def first_lines(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line and text of each docstring's first line, and whether it is a function's.

    A string under a constant or a field is a docstring, too.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_function = not isinstance(node, ast.Module | ast.ClassDef)
            strings = ((line.lineno, text_of(line)) for line in (node.body[:1] if is_function else node.body))
            yield from ((line, text.partition("\n")[0], is_function) for line, text in strings if text)


def text_of(statement: ast.stmt) -> str:
    """Return the text of a statement that is a string; empty if it is none."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return inspect.cleandoc(value) if isinstance(value, str) else ""
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
