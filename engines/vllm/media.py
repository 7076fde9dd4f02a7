"""Names of the images and sounds of requests: the content that the model gets, hashed in a thread of its own.

vLLM's identifiers are no names of a content. A caller may choose them (`multi_modal_uuids`), also ones that
look like a digest, and where a request has options of the processor vLLM hashes the caller's choice. But the
engine's own caches of KV and of encoded images go by them. So an identifier that stood for two contents is
used for none: what the engine computes of it may be of the other.
"""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import torch

from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vllm.config import VllmConfig
    from vllm.multimodal.inputs import MultiModalFeatureSpec

Media = dict[int, bytes]
"""Names of the items that overlap each block of a request, by the block's number."""
HANDLE: Final = {"address", "monotonic_id"}
"""Fields of an item whose content lies in memory that vLLM's processes share."""
MAX_IDENTIFIERS: Final = 1 << 16
"""Number of vLLM's identifiers of which the content is remembered: more than its own caches hold."""


class MediaNames:
    """See the module."""

    def __init__(
        self,
        block_tokens: int,
        encoded_by: str | None = None,
        *,
        adapters_encode: bool = False,
        computed_in_parts: bool = False,
        is_scaled: bool = False,
        is_pruned: bool = False,
    ) -> None:
        """Make it; `encoded_by` says who else may encode images, and is None where the engine alone does it.

        `adapters_encode` says whether adapters change how images are encoded, `computed_in_parts` whether the
        tokens of an image, which see those behind them, may be computed in several steps, `is_scaled` whether
        encoders scale by the images before, or by a file, `is_pruned` whether tokens of videos are left out.
        """
        self._block_tokens, self._encoded_by = block_tokens, encoded_by
        self._adapters_encode, self._computed_in_parts = adapters_encode, computed_in_parts
        self._is_scaled, self._is_pruned = is_scaled, is_pruned
        self._contents: OrderedDict[str, str | None] = OrderedDict()
        """What each of vLLM's identifiers stands for; None where that is not certain."""
        self._hashing = ThreadPoolExecutor(1, "weir media")
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}
        """Names of items that are still in memory, as vLLM keeps those of earlier turns, by `id`."""

    @classmethod
    def of_engine(cls, config: VllmConfig, block_tokens: int) -> MediaNames:
        """Return those of an engine with this configuration."""
        transfer, lora = config.ec_transfer_config, config.lora_config
        manager = getattr(config, "ec_manager_config", None)  # which vLLM has from 0.32 on
        encoded_by = getattr(manager, "encoder_cache_manager_cls", None)
        if transfer is not None and transfer.is_ec_consumer:
            encoded_by = transfer.ec_connector
        adapters_encode = lora is not None and lora.enable_tower_connector_lora
        is_seen_whole = getattr(config.model_config, "is_mm_prefix_lm", False)
        in_parts = is_seen_whole and not config.scheduler_config.disable_chunked_mm_input
        multimodal = getattr(config.model_config, "multimodal_config", None)
        return cls(
            block_tokens,
            encoded_by,
            adapters_encode=adapters_encode,
            computed_in_parts=in_parts,
            is_scaled=getattr(multimodal, "mm_encoder_attn_dtype", None) is not None,
            is_pruned=bool(getattr(multimodal, "video_pruning_rate", None)),
        )

    def begin(self, features: Sequence[MultiModalFeatureSpec], *, has_adapter: bool = False) -> Future[Media]:
        """Return a future of the names, which raises KeySpaceError if one of these has none."""
        named: Future[Media] = Future()
        if not features:
            named.set_result({})
            return named
        doubt = self._doubt(has_adapter=has_adapter)
        if doubt is not None:
            named.set_exception(KeySpaceError(doubt))
            return named
        return self._hashing.submit(self._named, list(features))

    def _doubt(self, *, has_adapter: bool) -> str | None:
        """Return why the KV of images and sounds is not that of their content; None where it is."""
        if has_adapter and self._adapters_encode:
            # vLLM keeps an encoded image by the adapter's name, also after the adapter was loaded anew.
            return "an adapter changes how images and sounds are encoded"
        if self._is_scaled:
            return "how they are encoded depends on those before them, or on a file (mm_encoder_attn_dtype)"
        if self._is_pruned:
            # vLLM corrects the positions of all tokens behind a video when it encodes it, which after a hit
            # it does not.
            return "behind a video that is loaded, vLLM computes at other positions (video_pruning_rate)"
        if self._computed_in_parts:
            return (
                "an image's tokens see those behind them, and may be computed before these are there "
                "(set disable_chunked_mm_input)"
            )
        return None

    def _named(self, features: list[MultiModalFeatureSpec]) -> Media:
        try:
            return self._by_block(features)
        except KeySpaceError:
            raise
        except Exception as error:  # whatever an item of a later vLLM or another model consists of
            raise KeySpaceError(f"an image or sound can't be hashed: {error!r}") from None

    def _by_block(self, features: list[MultiModalFeatureSpec]) -> Media:
        """Name what overlaps each block, and say where it starts in the block."""
        media: dict[int, list[list[Any]]] = {}
        size = self._block_tokens
        for feature in features:
            offset, length = feature.mm_position.offset, feature.mm_position.length
            name = self._certain_name(feature)
            if feature.mm_position.is_embed is not None:
                name = _masked_name(name, feature.mm_position.is_embed)
            for number in range(offset // size, (offset + length - 1) // size + 1):
                media.setdefault(number, []).append([feature.modality, name, offset - number * size])
        return {number: _line(overlapping) for number, overlapping in media.items()}

    def _certain_name(self, feature: MultiModalFeatureSpec) -> str:
        """Return the name of what the engine computes with where it is given this item."""
        if self._encoded_by is not None:
            raise KeySpaceError(f"images and sounds may be encoded elsewhere ({self._encoded_by})")
        identifier = feature.identifier
        try:
            name = self._name(feature)
        except BaseException:
            self._remember(identifier, None)
            raise
        if self._contents.get(identifier, name) != name:
            self._remember(identifier, None)
            raise KeySpaceError(
                f"an {feature.modality} has the identifier of another one, so that the engine may take one "
                "for the other (multi_modal_uuids)"
            )
        self._remember(identifier, name)
        return name

    def _remember(self, identifier: str, name: str | None) -> None:
        self._contents[identifier] = name
        self._contents.move_to_end(identifier)
        if len(self._contents) > MAX_IDENTIFIERS:
            self._contents.popitem(last=False)

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


def _masked_name(name: str, mask: torch.Tensor) -> str:
    """Return the name of an item of which only the tokens in `mask` get embeddings."""
    content = sha256(name.encode())
    _feed(content, "is_embed", mask)
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
