"""Training of the small model: first repetition, then facts, then longer documents with more text in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from experiments.blocks.model.architecture import make_model
from experiments.blocks.model.corpus import Corpus
from experiments.blocks.model.documents import Document, Shape, document, repetition

SEED: Final = 1
THREADS: Final = 2
"""Number of torch's threads. It is fixed, because floating-point sums depend on it."""

_ANSWER_WEIGHT: Final = 5.0
_MATRIX_RATE: Final = 0.02
_OTHER_RATE: Final = 5e-3
_WARM_UP: Final = 20
_FINAL_RATE: Final = 0.03
_DECAY_FROM: Final = 0.4


@dataclass(frozen=True, slots=True)
class Stage:
    """Stage of training: a number of steps on batches of documents of one shape, or of repetition (None)."""

    shape: Shape | None
    batch: int
    steps: int


STAGES: Final = (
    Stage(None, 32, 80),
    Stage(Shape(64, 32, 5, False, 8), 24, 110),
    Stage(Shape(160, 48, 3, True, 12), 14, 100),
    Stage(Shape(512, 96, 6, True, 24), 8, 280),
)

Show = Callable[[int, int, str], None]
"""Function that is called with steps done, steps in all, and a text about progress."""


def train(folder: Path, corpus: Corpus, show: Show, stages: Sequence[Stage] = STAGES) -> None:
    """Train the model and write it to `folder`, which appears only when it is complete."""
    torch.set_num_threads(THREADS)
    random = np.random.default_rng(SEED)
    model = make_model(SEED).train()
    optimizers = _optimizers(model)
    total = sum(stage.steps for stage in stages)
    for step, stage in enumerate(_schedule(stages)):
        _set_rates(optimizers, step, total)
        documents = [_draw(random, corpus, stage.shape) for _ in range(stage.batch)]
        loss, recalled = _loss(model, documents)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if step % 25 == 24:
            show(step + 1, total, f"documents of {len(documents[0].tokens)}, recalls {recalled:.0%}")
    part = folder.with_suffix(".part")
    model.eval().save_pretrained(part)
    about = {"seed": SEED, "corpus": corpus.digest, "steps": total, "torch": torch.__version__}
    (part / "training.json").write_text(json.dumps(about))
    part.rename(folder)


def _schedule(stages: Sequence[Stage]) -> Iterator[Stage]:
    for stage in stages:
        yield from [stage] * stage.steps


def _draw(random: np.random.Generator, corpus: Corpus, shape: Shape | None) -> Document:
    return document(random, corpus.training, shape) if shape else repetition(random)


def _loss(model: Any, documents: Sequence[Document]) -> tuple[torch.Tensor, float]:
    """Return the mean loss over tokens, in which answers weigh more, and the share of right answers."""
    tokens = torch.from_numpy(np.stack([one.tokens for one in documents]).astype(np.int64))
    logits = model(tokens).logits[:, :-1]
    wanted = tokens[:, 1:]
    weights = torch.ones(wanted.shape)
    for row, one in enumerate(documents):
        weights[row, one.answers - 1] = _ANSWER_WEIGHT
    losses = cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
    is_answer = weights == _ANSWER_WEIGHT
    right = (logits.argmax(-1) == wanted)[is_answer].float().mean()
    return (losses * weights).sum() / weights.sum(), float(right)


def _optimizers(model: Any) -> list[tuple[torch.optim.Optimizer, float]]:
    """Return Muon for the matrices (Jordan et al., 2024) and AdamW for the rest, each with its rate."""
    inner: list[torch.Tensor] = []
    other: list[torch.Tensor] = []
    for name, weights in model.named_parameters():
        (inner if weights.ndim == 2 and "embed" not in name else other).append(weights)
    return [
        (torch.optim.Muon(inner, lr=_MATRIX_RATE, momentum=0.95, weight_decay=0.0), _MATRIX_RATE),
        (torch.optim.AdamW(other, lr=_OTHER_RATE, betas=(0.9, 0.95), weight_decay=0.0), _OTHER_RATE),
    ]


def _set_rates(optimizers: list[tuple[torch.optim.Optimizer, float]], step: int, total: int) -> None:
    left = (1 - step / total) / (1 - _DECAY_FROM)
    factor = min(1.0, (step + 1) / _WARM_UP) * min(1.0, max(_FINAL_RATE, left))
    for optimizer, rate in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
