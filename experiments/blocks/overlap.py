"""Measurement of loading a layer's KV while the layer before is computed, against one after the other.

    python -m experiments.blocks.overlap        # in .venv-blocks; after make blocks, which makes the model

The KV of a context's layer is one stream of a codec. Streams arrive in the order of the layers over a link of
a given rate, which is emulated by waiting. One thread decodes them as they arrive while another blends. Work
that holds Python's global lock in both threads cannot overlap.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import torch

from commands.intervals import Interval, mean_interval
from experiments.blocks.blend import Blender, chunk_kv
from experiments.blocks.model.load import Floats, Transformer, load_transformer
from kvcodec import decode, encode
from workload.blend import DEFAULT_SHARE

CODECS: Final = (("zstd", 3), ("fp8", 0), ("kivi", 4), ("cachegen", 3))
LINK_BIT_S: Final = 200e6
"""Rate of the link, at which loading the small model's KV takes about as long as blending."""
ROUNDS: Final = 9
CHUNK_TOKENS: Final = 64
CONTEXTS: Final = 24
CHUNKS: Final = 7
SWITCH_S: Final = 1e-4
"""Seconds for which a thread keeps Python's lock while the other waits; the default, 5 ms, is a layer."""


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Overlap:
    """Wall-clock times in milliseconds, means over rounds with 95 % intervals."""

    codec: str
    level: int
    loading: Interval
    """Time to load all layers, while nothing else runs."""
    blending: Interval
    """Time to blend when all layers are there."""
    one_after_the_other: Interval
    overlapped: Interval
    hidden: Interval
    """Share of the shorter of loading and blending that overlapping hides.

    It is below 1, because the first layer's loading can't be hidden.
    """


class Layers:
    """Streams of the reused KV, one for each layer and context, and the array that they are decoded into."""

    def __init__(self, of: Transformer, reused: Floats, codec: str, level: int) -> None:
        self._layout = replace(of.layout, layers=1)
        self._streams = [
            [encode(one[layer : layer + 1], self._layout, codec, level) for one in reused]
            for layer in range(of.layout.layers)
        ]
        sizes = [sum(map(len, streams)) for streams in self._streams]
        self._arrival_s = np.cumsum(sizes) * 8 / LINK_BIT_S
        """Seconds from the first request until each layer has arrived."""
        self.kv = np.zeros_like(reused)

    def load(self, layer: int, began_s: float) -> None:
        """Wait for a layer of all contexts and decode it; `began_s` is a time of `perf_counter`."""
        time.sleep(max(0.0, began_s + self._arrival_s[layer] - time.perf_counter()))
        for context, stream in enumerate(self._streams[layer]):
            self.kv[context, layer] = decode(stream, self._layout)[0]

    def load_all(self) -> None:
        """Load one layer after the other."""
        began_s = time.perf_counter()
        for layer in range(len(self._streams)):
            self.load(layer, began_s)

    def loading(self, loader: ThreadPoolExecutor) -> Callable[[int], None]:
        """Begin to load all layers in their order; returns a function that waits for a layer."""
        began_s = time.perf_counter()
        layers = range(len(self._streams))
        begun: Sequence[Future[None]] = [loader.submit(self.load, layer, began_s) for layer in layers]
        return lambda layer: begun[layer].result()


def measure(of: Transformer, contexts: np.ndarray, codec: str, level: int, share: float) -> Overlap:
    """Measure loading, blending and both overlapped in turns, for ROUNDS rounds after one to warm up.

    Raises RuntimeError if overlapping changes what is blended.
    """
    layers = Layers(of, chunk_kv(of, contexts, CHUNK_TOKENS), codec, level)
    blender = Blender(of)

    def blend() -> Floats:
        return blender.blend(contexts, layers.kv, share, lambda layer: None).kv.copy()

    def overlapped() -> Floats:
        return blender.blend(contexts, layers.kv, share, layers.loading(loader)).kv.copy()

    spent: dict[str, list[float]] = {"loading": [], "blending": [], "overlapped": []}
    with ThreadPoolExecutor(1) as loader:
        for _ in range(ROUNDS + 1):
            spent["loading"].append(_ms(layers.load_all)[0])
            blending_ms, blended = _ms(blend)
            spent["blending"].append(blending_ms)
            layers.kv[:] = np.nan
            overlapped_ms, same = _ms(overlapped)
            spent["overlapped"].append(overlapped_ms)
            if not np.array_equal(blended, same):
                raise RuntimeError(f"{codec} {level}: what was blended while it was loaded is not the same")
    rounds = list(zip(*(values[1:] for values in spent.values()), strict=True))  # the first one warms up
    return Overlap(
        codec,
        level,
        mean_interval([load for load, _, _ in rounds]),
        mean_interval([work for _, work, _ in rounds]),
        mean_interval([load + work for load, work, _ in rounds]),
        mean_interval([both for _, _, both in rounds]),
        mean_interval([(load + work - both) / min(load, work) for load, work, both in rounds]),
    )


def _ms(what: Callable[[], _Result]) -> tuple[float, _Result]:
    began_s = time.perf_counter()
    result = what()
    return 1000 * (time.perf_counter() - began_s), result


def main(arguments: Sequence[str]) -> int:
    """Measure every codec of `CODECS` and print it. Returns exit code 0, or 2 if there is no model."""
    folders = [Path(one) for one in arguments] or sorted(Path("build/blocks").glob("llama-gqa-*"))
    if not folders:
        print("There is no model in build/blocks: run make blocks first, or name a folder", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    sys.setswitchinterval(SWITCH_S)
    of = load_transformer(folders[-1])
    vocabulary = of.model.config.vocab_size
    contexts = np.random.default_rng(1).integers(0, vocabulary, (CONTEXTS, CHUNKS * CHUNK_TOKENS))
    size = f"{CONTEXTS} contexts of {contexts.shape[1]} tokens"
    print(f"{of.name}, {size}, {DEFAULT_SHARE:.0%} recomputed; ms, hidden in %:")
    for codec, level in CODECS:
        one = measure(of, contexts, codec, level, DEFAULT_SHARE)
        print(
            f"{codec} {level}: loading {one.loading:.0f}, blending {one.blending:.0f}, "
            f"one after the other {one.one_after_the_other:.0f}, overlapped {one.overlapped:.0f}, "
            f"hidden {100 * one.hidden:.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
