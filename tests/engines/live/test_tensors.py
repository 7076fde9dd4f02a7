"""vLLM's KV tensors, whatever their strides."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="make test-engines")
pytest.importorskip("vllm", reason="make test-engines")

import torch

from engines.vllm.space import Layout
from engines.vllm.tensors import KvTensors
from hostlib.engine import KvSpace
from hostlib.protocol.errors import KeySpaceError

BLOCKS, HEADS, TOKENS, WIDTH = 6, 2, 4, 8
BLOCK_BYTES = HEADS * TOKENS * WIDTH * 4
NAMES = ("layer.0", "layer.1", "layer.2")
LAYOUT = Layout(
    KvSpace(
        name="m", model="w", layout="l", dtype="float32", block_tokens=TOKENS,
        object_bytes=(2 * BLOCK_BYTES, BLOCK_BYTES),
    ),
    (NAMES[:2], NAMES[2:]),
    dict.fromkeys(NAMES, BLOCK_BYTES),
    BLOCKS,
)  # fmt: skip

SHAPES = {
    "blocks first": lambda: torch.randn(BLOCKS, HEADS, TOKENS, WIDTH),
    "blocks first, heads inside": lambda: torch.randn(BLOCKS, TOKENS, HEADS, WIDTH).transpose(1, 2),
    "blocks second": lambda: torch.randn(2, BLOCKS, TOKENS, HEADS * WIDTH // 2),
    "several of the kernel's blocks in one": lambda: torch.randn(2 * BLOCKS, HEADS, TOKENS // 2, WIDTH),
    "every other of a larger tensor": lambda: torch.randn(2 * BLOCKS, HEADS, TOKENS, WIDTH)[::2],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_read_from_one_engine_is_written_to_another(shape: str) -> None:
    torch.manual_seed(1)
    mine = {name: SHAPES[shape]() for name in NAMES}
    theirs = {name: torch.zeros_like(tensor) for name, tensor in mine.items()}
    here, there = KvTensors(LAYOUT, mine), KvTensors(LAYOUT, theirs)
    for block in range(BLOCKS):
        for index, length in enumerate(LAYOUT.space.object_bytes):
            content = here.read(block, index)
            assert content is not None
            assert len(content) == len(there.empty(index)) == length
            there.write(block, index, content)
    assert all(torch.equal(mine[name], theirs[name]) for name in NAMES)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_no_number_is_not_read(value: float, dtype: torch.dtype) -> None:
    sizes = dict.fromkeys(NAMES, BLOCK_BYTES * dtype.itemsize // 4)
    mine = {name: torch.full((BLOCKS, HEADS, TOKENS, WIDTH), 6e4, dtype=dtype) for name in NAMES}
    mine[NAMES[2]][4, 1, 3, 5] = value
    here = KvTensors(replace(LAYOUT, layer_bytes=sizes), mine)
    spoiled = [
        (block, index) for block in range(BLOCKS) for index in (0, 1) if here.read(block, index) is None
    ]
    assert spoiled == [(4, 1)]


def test_numbers_in_8_bits_are_read_whatever_they_are() -> None:
    mine = {name: torch.full((BLOCKS, HEADS, TOKENS, WIDTH), 0x7F, dtype=torch.uint8) for name in NAMES}
    layout = replace(LAYOUT, layer_bytes=dict.fromkeys(NAMES, BLOCK_BYTES // 4))
    for dtype in (torch.uint8, torch.float8_e4m3fn):
        here = KvTensors(layout, {name: one.view(dtype) for name, one in mine.items()})
        assert here.read(0, 0) is not None


def test_a_write_to_a_devices_memory_is_over_when_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, a block with gaps in it comes by way of another one; kernels do not wait for that copy."""
    devices: list[str] = []
    waits = SimpleNamespace(synchronize=lambda: devices.append("over"))
    monkeypatch.setattr(torch.accelerator, "current_stream", lambda of: devices.append(of.type) or waits)  # type: ignore[func-returns-value]
    there = KvTensors(LAYOUT, {name: torch.zeros(BLOCKS, HEADS, TOKENS, WIDTH).to("meta") for name in NAMES})
    there.write(3, 0, there.empty(0))
    assert devices == ["meta", "over"]


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({name: torch.zeros(5, HEADS, TOKENS, WIDTH) for name in NAMES}, "has no dimension of 6 blocks"),
        ({name: torch.zeros(BLOCKS, HEADS, TOKENS, 9) for name in NAMES}, "288 bytes, 256 were announced"),
        ({NAMES[0]: torch.zeros(BLOCKS, HEADS, TOKENS, WIDTH)}, "no KV tensor came for layer layer.1"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tensors: dict[str, torch.Tensor], why: str) -> None:
    with pytest.raises(KeySpaceError, match=why):
        KvTensors(LAYOUT, tensors)
