"""Documents: what they ask can be told from their context, and from nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.blocks.model.corpus import CorpusError, read_corpus
from experiments.blocks.model.documents import Shape, document, repetition

LINES = [b"a line of text that says little\n", b"and another one of some length, too\n"]
SHAPES = [Shape(), Shape(320, 64, 4), Shape(64, 32, 5, False, 8)]


@given(st.integers(0, 1000), st.sampled_from(SHAPES))
def test_every_answer_is_the_fact_of_its_subject_in_the_context(seed: int, shape: Shape) -> None:
    one = document(np.random.default_rng(seed), LINES, shape)
    text = one.tokens.tobytes()
    assert len(text) == shape.length
    assert one.tail == shape.length - shape.tail
    assert len(one.answers) == shape.questions
    for at in one.answers:
        assert at > one.tail
        assert text[at - 2 : at - 1] == b"?"
        section = text[text.index(b"#" + text[at - 1 : at]) : one.tail]
        assert section[section.index(b"=") + 1] == text[at]


def test_the_same_seed_gives_the_same_document() -> None:
    first, second = (document(np.random.default_rng(7), LINES, Shape()) for _ in range(2))
    assert first.tokens.tobytes() == second.tokens.tobytes()


@given(st.integers(0, 1000))
def test_a_repetition_can_be_told_from_its_first_turn(seed: int) -> None:
    one = repetition(np.random.default_rng(seed))
    assert (one.tokens[one.tail :] == one.tokens[: -one.tail]).all()


def test_training_and_judging_text_are_of_different_files(tmp_path: Path) -> None:
    for number in range(12):
        words = f"this is line {'abcdefghijkl'[number]} of a file that has prose in it"
        (tmp_path / f"file{number:02}.py").write_text(words)
    corpus = read_corpus(tmp_path)
    assert len(corpus.training) + len(corpus.held_out) <= 12
    assert not set(corpus.training) & set(corpus.held_out)
    with pytest.raises(CorpusError, match="no Python sources with prose"):
        read_corpus(tmp_path / "nothing here")
