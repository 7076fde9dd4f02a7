"""vLLM's KV tensors as objects of the pool: a block's bytes of some layers, one layer after the other."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch

from engines.numbers import holds_numbers
from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from engines.vllm.space import Layout


class KvTensors:
    """The KV tensors of all layers, as `BlockMemory`.

    Blocks are copied as the tensors' shape has them, so that any strides will do.
    """

    def __init__(self, layout: Layout, kv_caches: dict[str, torch.Tensor]) -> None:
        self._groups: list[list[torch.Tensor]] = []
        for names in layout.groups:
            missing = [name for name in names if name not in kv_caches]
            if missing:
                raise KeySpaceError(f"no KV tensor came for layer {missing[0]}")
            self._groups.append([_blocks_first(name, kv_caches[name], layout) for name in names])

    @cached_property
    def is_on_cpu(self) -> bool:
        """Return whether the tensors are in host memory."""
        return all(layer.device.type == "cpu" for group in self._groups for layer in group)

    def read(self, block_id: int, index: int) -> memoryview | None:
        """Return a copy of one object; None if it holds what is no number."""
        parts = [layer[block_id].detach().contiguous().flatten() for layer in self._groups[index]]
        content = torch.cat([part.view(torch.uint8) for part in parts])
        if not all(holds_numbers(part) for part in parts):
            return None
        return memoryview(content.cpu().numpy())

    def empty(self, index: int) -> memoryview:
        """Return room for one object."""
        size = sum(_block_bytes(layer) for layer in self._groups[index])
        return memoryview(torch.empty(size, dtype=torch.uint8).numpy())

    def write(self, block_id: int, index: int, content: memoryview) -> None:
        """Put an object where the engine looks for it."""
        source, at = torch.frombuffer(content, dtype=torch.uint8), 0
        for layer in self._groups[index]:
            block = layer[block_id]
            end = at + _block_bytes(layer)
            block.copy_(source[at:end].view(block.dtype).view(block.shape))
            at = end
        if not self.is_on_cpu:  # a block with gaps in it is copied in two steps, the second one later
            torch.accelerator.current_stream(block.device).synchronize()


def _blocks_first(name: str, tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Return the tensor with its blocks in the first dimension; KeySpaceError if there is no such view."""
    if tensor.dim() and tensor.shape[0] and tensor.shape[0] % layout.num_blocks == 0:
        blocks = tensor.unflatten(0, (layout.num_blocks, -1))  # kernels may see a block as several
    elif layout.num_blocks in tensor.shape:
        blocks = tensor.movedim(tuple(tensor.shape).index(layout.num_blocks), 0)
    else:
        raise KeySpaceError(f"{name}: {tuple(tensor.shape)} has no dimension of {layout.num_blocks} blocks")
    if _block_bytes(blocks) != layout.layer_bytes[name]:
        raise KeySpaceError(
            f"{name}: a block has {_block_bytes(blocks)} bytes, {layout.layer_bytes[name]} were announced"
        )
    return blocks


def _block_bytes(blocks: torch.Tensor) -> int:
    return int(blocks[0].numel() * blocks.element_size())
