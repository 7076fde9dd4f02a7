"""Record of coded sizes and rates by codec and level, which the emulator and the simulator use.

A whole block of each held-out document is coded. The sizes go into workload/codec_record.json as quantiles.
Rates are megabytes a second of CPU time on one core. They are the best of a few rounds, because other work on
the machine only slows coding.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from experiments.blocks.measure import Coder, project_coders
from experiments.blocks.model.corpus import Corpus
from experiments.blocks.model.load import Floats, Transformer, kv_of
from experiments.blocks.model.samples import draw_samples
from experiments.blocks.study import BLOCK
from kvcodec import CODECS, Layout

QUANTILES: Final = 21
ROUNDS: Final = 3
_DOCUMENTS_AT_ONCE: Final = 32
_PLAIN: Final = "plain"
"""Name of the codec that leaves blocks as they are, which is not recorded."""


def make_record(
    transformer: Transformer,
    corpus: Corpus,
    documents: int,
    seed: int,
    about: Mapping[str, Any],
    show: Callable[[str], None],
) -> dict[str, Any]:
    """Return the record; calls `show` with each codec and level after it has been measured."""
    samples = draw_samples(corpus, transformer.tokenize, BLOCK, documents, seed)
    blocks = _blocks(transformer, samples.contexts)
    recorded: dict[str, Any] = {
        name: {"default": codec.default, "levels": {}} for name, codec in CODECS.items() if name != _PLAIN
    }
    for coder in project_coders(transformer.layout):
        if coder.name != _PLAIN:
            recorded[coder.name]["levels"][str(coder.level)] = _measured(coder, blocks, transformer.layout)
            show(f"{coder.name} {coder.level}")
    about_record = {"documents": documents, "tokens_a_block": blocks.shape[3], "seed": seed, **about}
    return {"about": about_record, "codecs": recorded}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write the record so that a reader never sees half of the file."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def steps() -> int:
    """Return how often `make_record` calls `show`."""
    return sum(len(codec.levels) for name, codec in CODECS.items() if name != _PLAIN)


def _blocks(transformer: Transformer, contexts: Any) -> Floats:
    parts = []
    with torch.inference_mode():
        for at in range(0, len(contexts), _DOCUMENTS_AT_ONCE):
            tokens = torch.from_numpy(contexts[at : at + _DOCUMENTS_AT_ONCE])
            parts.append(kv_of(transformer.model(tokens, use_cache=True).past_key_values))
    return np.concatenate(parts)


def _measured(coder: Coder, blocks: Floats, layout: Layout) -> dict[str, Any]:
    plain_bytes = layout.bf16_bytes(blocks.shape[3])
    streams: list[bytes] = []
    encode_s, decode_s = [], []
    for _ in range(ROUNDS):
        began_s = time.process_time()
        streams = [coder.encode(block) for block in blocks]
        encoded_s = time.process_time()
        for stream in streams:
            coder.decode(stream)
        encode_s.append(encoded_s - began_s)
        decode_s.append(time.process_time() - encoded_s)
    shares = [len(stream) / plain_bytes for stream in streams]
    all_mb = plain_bytes * len(blocks) / 1e6
    return {
        "shares": [round(float(share), 5) for share in np.quantile(shares, np.linspace(0, 1, QUANTILES))],
        "mean_share": round(float(np.mean(shares)), 5),
        "encode_mb_s": round(all_mb / min(encode_s), 2),
        "decode_mb_s": round(all_mb / min(decode_s), 2),
    }
