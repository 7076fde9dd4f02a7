"""Study: the measurements of one `make blocks`, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from commands.intervals import Interval, mean_interval
from experiments.blocks.blend import RECOMPUTED_SHARES, Blender, chunk_kv
from experiments.blocks.counts import Sensitivity, shuffled_perplexity
from experiments.blocks.measure import (
    KVTC_BITS,
    KVTC_RANGES,
    Measured,
    measure,
    project_coders,
    published_coders,
)
from experiments.blocks.model.corpus import Corpus
from experiments.blocks.model.documents import Shape
from experiments.blocks.model.load import Transformer
from experiments.blocks.model.samples import draw_samples
from experiments.blocks.quality import Judge, Quality
from kvcodec import CODECS

BLOCK: Final = Shape(320, 64, 4)
"""Documents with a context of one block of 256 tokens, the size of LMCache's chunks, and a tail."""
CHUNKS: Final = Shape(512, 64, 6)
CHUNK_TOKENS: Final = 64
_CALIBRATION: Final = 1000
"""Number added to the seed, so that coders are calibrated on other documents than those judged."""


@dataclass(frozen=True, slots=True)
class BlendResult:
    """Result of one share of recomputed tokens.

    `how` is "full reuse", "blend", "prefix reuse" or "full recomputation".
    """

    how: str
    recomputed: float
    flops_saved: float
    quality: Quality

    def fields(self) -> dict[str, Any]:
        """Return the figures that the summary has."""
        return {"how": self.how, "recomputed": self.recomputed, "flops_saved": self.flops_saved} | (
            self.quality.fields()
        )


@dataclass(slots=True)
class Findings:
    """Findings so far."""

    exact: Quality
    sensitivity: Sensitivity
    blends: list[BlendResult] = field(default_factory=list)
    codecs: list[Measured] = field(default_factory=list)
    """Figures of each codec on the first set of documents."""
    more: list[tuple[Quality, list[Measured]]] = field(default_factory=list)
    """Quality of the exact cache and figures of the codecs, in the same order, on each further set."""
    more_blends: list[list[BlendResult]] = field(default_factory=list)
    """Results of blending on each further set, in the same order."""

    def blend_intervals(self, place: int) -> dict[str, Interval]:
        """Return figures of the blend at a place as means over all sets of documents, with 95 % intervals."""
        rows = [blends[place].quality.fields() for blends in (self.blends, *self.more_blends)]
        names = ("perplexity", "recall", "top1_agreement", "kl")
        return {name: mean_interval([float(row[name]) for row in rows]) for name in names}

    def intervals(self, place: int) -> dict[str, Interval]:
        """Return figures of the codec at a place as means over all sets of documents, with 95 % intervals."""
        sets = [(self.exact, self.codecs), *self.more]
        rows = [(exact, codecs[place]) for exact, codecs in sets]
        return {
            "ratio": mean_interval([one.ratio for _, one in rows]),
            "perplexity_lost": mean_interval(
                [one.quality.perplexity / exact.perplexity - 1 for exact, one in rows]
            ),
            "kl": mean_interval([one.quality.kl for _, one in rows]),
        }

    @property
    def shortfalls(self) -> list[str]:
        """Return the reasons why these figures mean nothing, or the default codec falls short."""
        missed = list(self.sensitivity.shortfalls)
        ours = self.of("cachegen", CODECS["cachegen"].default)
        theirs = self.of("lmcache", "its own")
        if ours and theirs and ours.ratio < theirs.ratio:
            missed.append(f"the default level's ratio is {ours.ratio:.2f}, LMCache's {theirs.ratio:.2f}")
        if ours and ours.quality.perplexity > 1.02 * self.exact.perplexity:
            missed.append("the default level costs more than 2 % of perplexity")
        return missed

    def of(self, codec: str, level: int | str) -> Measured | None:
        """Return the first set's figures of a codec at a level, or None."""
        return next((one for one in self.codecs if (one.codec, one.level) == (codec, level)), None)


def run_study(
    transformer: Transformer,
    corpus: Corpus,
    samples: int,
    seed: int,
    seeds: int,
    show: Callable[[str], None],
) -> Findings:
    """Measure everything on `seeds` sets of documents; calls `show` with what was measured last."""
    judge = Judge(transformer, draw_samples(corpus, transformer.tokenize, BLOCK, samples, seed))
    sensitivity, blends = _blending(transformer, corpus, samples, seed, judge, show)
    findings = Findings(judge.exact, sensitivity, blends)
    findings.codecs = _codecs(transformer, corpus, judge, samples, seed, show)
    for other in range(seed + 1, seed + seeds):
        judge = Judge(transformer, draw_samples(corpus, transformer.tokenize, BLOCK, samples, other))
        measured = _codecs(transformer, corpus, judge, samples, other, show)
        findings.more.append((judge.exact, measured))
        findings.more_blends.append(_blending(transformer, corpus, samples, other, judge, show)[1])
    return findings


def _codecs(
    transformer: Transformer,
    corpus: Corpus,
    judge: Judge,
    samples: int,
    seed: int,
    show: Callable[[str], None],
) -> list[Measured]:
    others = draw_samples(corpus, transformer.tokenize, BLOCK, samples, seed + _CALIBRATION)
    calibration = Judge(transformer, others).kv
    codecs = []
    for coder in (*published_coders(transformer, calibration), *project_coders(transformer.layout)):
        codecs.append(measure(coder, judge, transformer.layout))
        show(f"{coder.name} {coder.level}")
    return codecs


def steps(seeds: int = 1) -> int:
    """Return how often `run_study` calls `show`."""
    published = 2 + len(KVTC_BITS) * len(KVTC_RANGES)
    return seeds * (len(RECOMPUTED_SHARES) + published + sum(len(codec.levels) for codec in CODECS.values()))


def _blending(
    transformer: Transformer,
    corpus: Corpus,
    count: int,
    seed: int,
    blocks: Judge,
    show: Callable[[str], None],
) -> tuple[Sensitivity, list[BlendResult]]:
    samples = draw_samples(corpus, transformer.tokenize, CHUNKS, count, seed)
    tokens = samples.contexts.shape[1] // CHUNK_TOKENS * CHUNK_TOKENS
    samples = samples.last(tokens)
    judge = Judge(transformer, samples)
    reused = chunk_kv(transformer, samples.contexts, CHUNK_TOKENS)
    blender = Blender(transformer)
    results = []
    for share in RECOMPUTED_SHARES:
        blended = blender.blend(samples.contexts, reused, share)
        how = {0.0: "full reuse", 1.0: "full recomputation"}.get(share, "blend")
        results.append(BlendResult(how, blended.recomputed, blended.flops_saved, judge.judge(blended.kv)))
        show(f"blend {share:.0%}")
    saved = blender.prefix_saves(tokens, CHUNK_TOKENS)
    results.append(BlendResult("prefix reuse", 1 - CHUNK_TOKENS / tokens, saved, judge.exact))
    sensitivity = Sensitivity(
        blocks.exact.perplexity,
        shuffled_perplexity(blocks, seed),
        judge.exact.recall,
        results[0].quality.recall,
    )
    return sensitivity, results


def block_shares(codecs: Sequence[Measured]) -> dict[str, list[float]]:
    """Return the blocks' sizes by codec and level, as ascending shares of the size in bfloat16."""
    plain = next(one for one in codecs if one.codec == "plain")
    whole = sum(plain.block_bytes) / len(plain.block_bytes)
    return {
        f"{one.codec} {one.level}": sorted(size / whole for size in one.block_bytes)
        for one in codecs
        if isinstance(one.level, int)
    }
