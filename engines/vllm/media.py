"""Names of the images and sounds of requests: the content that the model gets, hashed in a thread of its own.

vLLM's identifiers are no names of a content. A caller may choose them (`multi_modal_uuids`), also ones that
look like a digest, and where a request has options of the processor vLLM hashes the caller's choice.
"""

from __future__ import annotations

import json
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import torch

from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vllm.multimodal.inputs import MultiModalFeatureSpec

Media = dict[int, bytes]
"""For each block of a request the names of what overlaps it, by the block's number."""
HANDLE: Final = {"address", "monotonic_id"}
"""Fields of an item whose content lies in memory that vLLM's processes share."""


class MediaNames:
    """See the module."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._hashing = ThreadPoolExecutor(1, "weir media")
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}
        """Names of items that are still in memory, as vLLM keeps those of earlier turns, by `id`."""

    def begin(self, features: Sequence[MultiModalFeatureSpec]) -> Future[Media]:
        """Return a future of the names, which raises KeySpaceError if one of these has none."""
        if not features:
            nothing: Future[Media] = Future()
            nothing.set_result({})
            return nothing
        return self._hashing.submit(self._by_block, list(features))

    def _by_block(self, features: list[MultiModalFeatureSpec]) -> Media:
        """Name what overlaps each block, and say where it starts in the block."""
        media: dict[int, list[list[Any]]] = {}
        size = self._block_tokens
        for feature in features:
            offset, length = feature.mm_position.offset, feature.mm_position.length
            name = self._name(feature)
            for number in range(offset // size, (offset + length - 1) // size + 1):
                media.setdefault(number, []).append([feature.modality, name, offset - number * size])
        return {number: _line(overlapping) for number, overlapping in media.items()}

    def _name(self, feature: MultiModalFeatureSpec) -> str:
        item = feature.data
        if item is None or item.keys() >= HANDLE:
            raise KeySpaceError(
                f"the content of an {feature.modality} is not in the scheduler's process "
                "(an encoder elsewhere, or mm_processor_cache_type='shm')"
            )
        place = id(item)
        known = self._names.get(place)
        if known is None or known[0]() is not item:
            forget = weakref.ref(item, lambda _: self._names.pop(place, None))
            known = self._names[place] = (forget, _content_name(item))
        return known[1]


def _content_name(item: Mapping[str, Any]) -> str:
    content = sha256()
    for name, field in sorted(item.items()):
        _feed(content, name, field.data)
    return content.hexdigest()


def _feed(content: Any, name: str, data: Any) -> None:
    """Put tensors, also nested ones, and plain numbers into a hash, each with its name, type and shape."""
    if isinstance(data, torch.Tensor):
        plain = data.detach().cpu().contiguous()
        content.update(_line([name, str(plain.dtype), list(plain.shape)]))
        content.update(plain.reshape(-1).view(torch.uint8).numpy())
    elif isinstance(data, list | tuple):
        content.update(_line([name, "list", len(data)]))
        for one in data:
            _feed(content, name, one)
    elif data is None or isinstance(data, bool | int | float | str):
        content.update(_line([name, data]))
    else:
        raise KeySpaceError(f"an image or sound has {type(data).__name__} in {name}, which has no name")


def _line(parts: Any) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode()
