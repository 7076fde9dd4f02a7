"""Samples: held-out documents as a model's tokens, with a context to reuse and a tail to judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from experiments.blocks.model.corpus import Corpus
from experiments.blocks.model.documents import Document, Shape, document
from experiments.blocks.model.load import ModelError, Tokenize

TokenIds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Samples:
    """Batch of documents, all of one length."""

    contexts: TokenIds
    """Tokens with shape (documents, tokens of the context)."""
    tails: TokenIds
    """Tokens with shape (documents, tokens of the tail)."""
    answers: npt.NDArray[np.bool_]
    """Whether each token of the tails is an answer, which only the context can give."""

    def last(self, tokens: int) -> Samples:
        """Return these samples with only the last `tokens` tokens of each context."""
        return replace(self, contexts=np.ascontiguousarray(self.contexts[:, -tokens:]))


def draw_samples(corpus: Corpus, tokenize: Tokenize, shape: Shape, count: int, seed: int) -> Samples:
    """Return `count` documents of text that training has not seen; other seeds give other documents.

    Raises ModelError if the tokenizer leaves too few tokens of a document.
    """
    random = np.random.default_rng([seed, 0x5A])
    drawn = [_tokens(document(random, corpus.held_out, shape), tokenize) for _ in range(count)]
    context = min(len(tokens) - tail for tokens, tail, _ in drawn)
    tail = min(tail for _, tail, _ in drawn)
    if context < 2 or tail < 2:
        raise ModelError("the model's tokenizer leaves nothing of the documents")
    rows = [(tokens[-own_tail - context :][: context + tail], answers) for tokens, own_tail, answers in drawn]
    tokens = np.array([row for row, _ in rows])
    answers = np.array([marks[:tail] for _, marks in rows])
    return Samples(tokens[:, :context], tokens[:, context:], answers)


def _tokens(one: Document, tokenize: Tokenize) -> tuple[list[int], int, list[bool]]:
    """Return a document's tokens, how many of them are the tail's, and which of those are answers."""
    text = one.tokens.tobytes()
    tail: list[int] = []
    marks: list[bool] = []
    at = one.tail
    for answer in [*one.answers.tolist(), len(text)]:
        for piece, is_answer in ((text[at:answer], False), (text[answer : answer + 1], True)):
            tokens = tokenize(piece)
            tail += tokens
            marks += [is_answer] * len(tokens)
        at = answer + 1
    return tokenize(text[: one.tail]) + tail, len(tail), marks
