"""Quality of a model's output with a KV cache that is not exactly its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import torch
from torch.nn.functional import log_softmax

from experiments.blocks.model.load import Floats, Transformer, cache_of, kv_of
from experiments.blocks.model.samples import Samples

CONTINUED: Final = 16
"""Number of tokens of a greedy continuation."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality with one cache on the tails of all samples, against the model's own cache."""

    perplexity: float
    recall: float
    """Share of answers that are the likeliest token."""
    top1_agreement: float
    """Share of tokens of the tails for which both caches make the same token the likeliest."""
    kl: float
    """Mean over tokens of the divergence KL(exact || this), in nats."""
    continuation: float
    """Share of a greedy continuation's tokens that are before the first that differs."""

    def fields(self) -> dict[str, float]:
        """Return the figures by name, for a summary."""
        return asdict(self)


class Judge:
    """Judge of caches, which holds the samples' exact cache and the model's output with it."""

    def __init__(self, transformer: Transformer, samples: Samples) -> None:
        self._transformer = transformer
        self._samples = samples
        self._tails = torch.from_numpy(samples.tails)
        with torch.inference_mode():
            context = transformer.model(torch.from_numpy(samples.contexts), use_cache=True)
        self.kv: Floats = kv_of(context.past_key_values)
        """Exact KV with shape (samples, layers, 2, tokens, channels)."""
        self._exact = self._logprobs(self.kv)
        self._exact_words = self._continue(self.kv)
        self.exact = self.judge(self.kv)

    def judge(self, kv: Floats) -> Quality:
        """Return the quality of another cache of the same contexts."""
        logprobs = self._logprobs(kv)
        wanted = self._tails[:, 1:]
        picked = logprobs.gather(-1, wanted[..., None])[..., 0]
        answers = torch.from_numpy(self._samples.answers[:, 1:])
        likeliest, exact_likeliest = logprobs.argmax(-1), self._exact.argmax(-1)
        kl = (self._exact.exp() * (self._exact - logprobs)).sum(-1)
        same = self._continue(kv) == self._exact_words
        return Quality(
            perplexity=float(torch.exp(-picked.mean())),
            recall=float((likeliest == wanted)[answers].float().mean()),
            top1_agreement=float((likeliest == exact_likeliest).float().mean()),
            kl=float(kl.mean()),
            continuation=float(np.cumprod(same, axis=1).mean()),
        )

    def _logprobs(self, kv: Floats) -> torch.Tensor:
        """Return the log-probabilities of the tails' tokens but the first, which the context decides."""
        with torch.inference_mode():
            cache = cache_of(kv, self._transformer)
            logits = self._transformer.model(self._tails, past_key_values=cache).logits
            return log_softmax(logits[:, :-1].double(), dim=-1)

    def _continue(self, kv: Floats) -> np.ndarray:
        """Return the greedy continuation of each tail's first half, CONTINUED tokens long."""
        half = self._tails.shape[1] // 2
        words = []
        with torch.inference_mode():
            cache = cache_of(kv, self._transformer)
            given = self._tails[:, :half]
            for _ in range(CONTINUED):
                given = self._transformer.model(given, past_key_values=cache).logits[:, -1:].argmax(-1)
                words.append(given[:, 0].numpy())
        return np.stack(words, axis=1)
