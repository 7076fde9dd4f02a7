"""Documents whose end only their context can predict: text, facts in it, and questions about the facts.

    #K                      the next fact is about K (a subject)
    and returns the number  lines of text
    =7                      the fact: K is 7
    ?K7                     a question, and its answer

A subject is often in an earlier chunk than its fact. The fact's KV then depends on the chunks before it, as a
pronoun's does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SUBJECTS = b"ABCDEFGHIJKLMNOP"
VALUES = b"0123456789"
_LINE_BYTES = 3
_QUESTION_BYTES = 4

Tokens = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Document:
    """Text with a context and a tail of questions; a token is a byte."""

    tokens: Tokens
    tail: int
    """Place of the first token of the tail; the context is before it."""
    answers: npt.NDArray[np.int64]
    """Places of the answers, all in the tail."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of documents; lengths are in tokens."""

    length: int = 512
    tail: int = 64
    subjects: int = 6
    text: bool = True
    """Whether a line of text separates a subject from its fact, and text fills the rest of the section."""
    questions: int = 8
    """Number of questions in the tail; text fills the rest."""


def document(random: np.random.Generator, lines: Sequence[bytes], shape: Shape) -> Document:
    """Return one document, with text from `lines`, taken in order from a random place."""
    text = _text_from(random, lines)
    facts, content = _context(random, text, shape)
    answers = []
    for _ in range(shape.questions):
        subject = list(facts)[int(random.integers(len(facts)))]
        if len(content) + _QUESTION_BYTES <= shape.length:
            answers.append(len(content) + _QUESTION_BYTES - 2)
            content += b"?%c%c\n" % (subject, facts[subject])
    while len(content) < shape.length:
        content += next(text)
    tokens = np.frombuffer(bytes(content[: shape.length]), np.uint8)
    return Document(tokens, shape.length - shape.tail, np.array(answers, np.int64))


def repetition(random: np.random.Generator, length: int = 64) -> Document:
    """Return a random word that is repeated to `length` tokens: the context predicts all repetitions.

    Its tail, and the answers, begin behind the first occurrence.
    """
    period = int(random.integers(8, 28))
    word = random.integers(ord("a"), ord("z") + 1, size=period)
    return Document(np.resize(word, length).astype(np.uint8), period, np.arange(period + 1, length))


def _context(
    random: np.random.Generator, text: Iterator[bytes], shape: Shape
) -> tuple[dict[int, int], bytearray]:
    """Return the facts by subject, and the text that states them, with a section for each subject."""
    length = shape.length - shape.tail
    facts: dict[int, int] = {}
    content = bytearray()
    for place, subject in enumerate(random.permutation(np.frombuffer(SUBJECTS, np.uint8))[: shape.subjects]):
        end = length * (place + 1) // shape.subjects
        section = b"#%c\n" % int(subject) + (next(text) if shape.text else b"")
        if len(content) + len(section) + _LINE_BYTES > length:
            break
        facts[int(subject)] = VALUES[int(random.integers(len(VALUES)))]
        content += section + b"=%c\n" % facts[int(subject)]
        while shape.text and len(content) < end:
            content += next(text)
    return facts, content[:length].ljust(length, b"\n")


def _text_from(random: np.random.Generator, lines: Sequence[bytes]) -> Iterator[bytes]:
    place = int(random.integers(len(lines)))
    while True:
        yield lines[place % len(lines)]
        place += 1
