"""The rival KVTC: more bits, less error; sinks are kept; correlated channels cost little."""

from __future__ import annotations

import numpy as np

from experiments.blocks.kvtc import BLOCK, SINKS, KvtcCoder
from kvcodec.bfloat16 import from_bits, to_bits

TOKENS, CHANNELS, HEAD = 64, 32, 16


def documents(count: int, seed: int) -> np.ndarray:
    """Few things vary in them: a third of the channels' number."""
    random = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).standard_normal((2, 2, 10, CHANNELS))
    causes = random.standard_normal((count, 2, 2, TOKENS, 10))
    return (causes @ mixing).astype(np.float32)


def error(coder: KvtcCoder, kv: np.ndarray) -> float:
    decoded = coder.decode(coder.encode(kv), 2, TOKENS, CHANNELS)
    assert np.array_equal(decoded[:, :, :SINKS], from_bits(to_bits(kv))[:, :, :SINKS])
    return float(np.square(decoded - kv).mean() / np.square(kv).mean())


def test_more_bits_less_error_and_longer_streams() -> None:
    calibration, kv = documents(8, 1), documents(1, 2)[0]
    coders = [KvtcCoder(calibration, HEAD, 1e4, bits, bits) for bits in (1.0, 2.0, 4.0)]
    errors = [error(coder, kv) for coder in coders]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02
    lengths = [len(coder.encode(kv)) for coder in coders]
    assert lengths == sorted(lengths)


def test_ranges_of_the_block_reach_its_ends_and_are_sent() -> None:
    """A block with values that the calibration has never seen: a bell curve's range cuts them off."""
    calibration, kv = documents(8, 1), 3 * documents(1, 2)[0]
    normal, block = (KvtcCoder(calibration, HEAD, 1e4, 4.0, 4.0, ranges) for ranges in ("normal", BLOCK))
    assert error(block, kv) < 0.2 * error(normal, kv)
    typical = documents(1, 3)[0]
    components = sum(int((basis.bits > 0).sum()) for kinds in block._bases for basis in kinds)
    sink_bytes = 2 * 2 * SINKS * CHANNELS * 2
    sent = np.frombuffer(block.encode(typical)[sink_bytes : sink_bytes + 4 * components], np.float16)
    assert (sent[::2] < sent[1::2]).all()
