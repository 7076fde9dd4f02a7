"""Keys of the KV of an engine's requests: what each block's key depends on, and which requests have none."""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from vllm.logger import init_logger

from engines.vllm.errors import AdapterChangedError
from hostlib.engine import KeyChain
from hostlib.engine.space import UNNAMED
from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from vllm.v1.request import Request

    from engines.vllm.adapters import AdapterNames
    from engines.vllm.media import Media, MediaNames
    from engines.vllm.resolved import Resolved
    from hostlib.engine import KvSpace
    from hostlib.protocol.seal import Seal

START_PAUSE_S = 10.0
"""Seconds for which an engine's start waits for the name of its weights, so that its first requests are
shared."""
KNOWN_PARAMETERS = frozenset({
    "abort_immediately", "arrival_time", "block_hasher", "cache_salt", "client_index", "kv_hints",
    "lora_request", "mm_features", "pooling_params", "priority", "prompt_embeds", "prompt_is_token_ids",
    "prompt_token_ids", "reasoning_ended", "reasoning_parser_kwargs", "request_id", "resumable",
    "sampling_params", "session_id", "trace_headers",
})  # fmt: skip
"""Parameters of vLLM's requests. Others that a version has there must not be set: KV may depend on them."""
MAX_REASONS = 64
"""Number of different reasons that are logged; an adapter's is one."""

_log = logging.getLogger("weir")
_info = init_logger("vllm.weir")
"""vLLM shows what its own loggers say at this level."""


class RequestKeys:
    """Keys of one request's blocks, the same for all ranks, derived as the request grows and each once.

    A block's key depends on the tokens so far, the adapter and the cache salt, and on the images and sounds
    that overlap it or a block before it. Raises KeySpaceError for a request whose KV depends on what has no
    name.
    `adapter` names the weights of the request's adapter; None if it has no adapter. `media` names its images
    and sounds.
    """

    def __init__(
        self, space: KvSpace, seal: Seal, request: Request, media: Media, adapter: str | None = None
    ) -> None:
        _check_nameable(request)
        lora = request.lora_request
        if (lora is None) != (adapter is None):
            raise KeySpaceError("the adapter of a request has no name")
        self.adapter = None if lora is None or adapter is None else (int(lora.lora_int_id), adapter)
        """vLLM's number of the request's adapter, and the name that the keys have it under."""
        self.space = space
        """The key space, with the weights and the generation that the keys are made for."""
        self._request, self._block_tokens = request, space.block_tokens
        self._media = media
        salt = b"" if adapter is None and not request.cache_salt else _line([adapter, request.cache_salt])
        self._chain = KeyChain(space, seal, salt)

    @property
    def keys(self) -> list[bytes]:
        """Return the keys of the blocks so far, in order; they are not to be changed."""
        return self._chain.keys

    def extend(self, blocks: int) -> list[bytes]:
        """Return `keys`, after deriving those that are missing of the request's first `blocks` blocks.

        ValueError if the request does not have so many whole blocks.
        """
        done, size = len(self._chain.keys), self._block_tokens
        if blocks > done:
            tokens = list(self._request.all_token_ids[done * size : blocks * size])
            for number in range(done, blocks):
                start = (number - done) * size
                self._chain.extend(tokens[start : start + size], self._media.get(number, b""))
        return self._chain.keys


class EngineKeys:
    """The keys of all requests of one engine: of its weights, its configuration, and its generation.

    `weights` is the name of the weights when it is known; until then no request has keys. If it is a
    KeySpaceError, the engine shares with no other, as it does if a part of `settings` has no name.
    """

    def __init__(
        self,
        space: KvSpace,
        seal: Seal,
        settings: Resolved,
        weights: Future[str],
        adapters: AdapterNames,
        media: MediaNames,
    ) -> None:
        self._seal, self._settings, self._weights, self._adapters = seal, settings, weights, adapters
        self._media = media
        self._told: set[str] = set()
        self._space = replace(space, settings=settings.digest)
        if settings.nameless:
            self._share_with_nobody(f"its configuration has no name: {'; '.join(settings.nameless)}")
        wait([weights], START_PAUSE_S)
        if self.space.model == UNNAMED:
            self._tell("the model's files are being hashed; it is shared as soon as they are")
            _info.info("%s", self.health())

    @property
    def space(self) -> KvSpace:
        """Return the key space with the current generation; its model is `UNNAMED` until the weights have a
        name."""
        if self._space.model == UNNAMED and self._weights.done():
            try:
                name = self._weights.result()
            except KeySpaceError as error:
                name = "weights without a name"
                self._share_with_nobody(str(error))
            self._space = self._space.named(name)
            _info.info("%s", self.health())
        return self._space

    def begin_media(self, request: Request) -> Future[Media]:
        """Return a future of the names of a request's images and sounds."""
        return self._media.begin(request.mm_features, has_adapter=request.lora_request is not None)

    def of(self, request: Request, media: Future[Media]) -> RequestKeys | None:
        """Return the keys of a request, or None if its KV is not shared now; the log says once why.

        `media` is what `begin_media` returned of the request. Raises AdapterChangedError, once, if the
        request's adapter is another one than before under the same name.
        """
        space, lora = self.space, request.lora_request
        try:
            # Also while the weights have no name: vLLM caches KV of the adapter that it computes with now.
            adapter = self._adapters.name(lora) if lora is not None else None
            if space.model == UNNAMED:
                return None
            return RequestKeys(space, self._seal, request, media.result(), adapter)
        except AdapterChangedError:
            raise
        except KeySpaceError as error:
            self._tell(str(error))
            return None

    def new_generation(self) -> None:
        """Begin a new generation, as the engine has other weights: nothing stored before is found.

        Keys that were made before stay those of the former weights: their requests must not use them again.
        """
        self._space = self._space.new_generation()
        _info.info("%s", self.health())

    def health(self) -> str:
        """Return one line that says what is shared with whom."""
        space = self._space
        what = (
            f"Key space {space.name!r}, weights {space.model or 'not named yet'}, settings {space.settings}"
        )
        if space.generation:
            return f"{what}: KV is shared with no other engine (generation {space.generation})."
        if space.model == UNNAMED:
            return f"{what}: KV is not shared yet."
        return f"{what}: KV is shared with the engines of tenant {self._seal.tenant} that say the same."

    def _share_with_nobody(self, reason: str) -> None:
        if not self._space.generation:
            self._space = self._space.new_generation()
        self._tell(f"with other engines: {reason}")

    def _tell(self, reason: str) -> None:
        if reason not in self._told and len(self._told) < MAX_REASONS:
            self._told.add(reason)
            _log.warning("KV is not shared: %s.", reason)


def _check_nameable(request: Request) -> None:
    if request.prompt_embeds is not None or request.prompt_token_ids is None:
        raise KeySpaceError("prompts given as embeddings have no name")
    if getattr(request, "resumable", False):
        raise KeySpaceError("the tokens of a streaming session change while it goes on")
    if getattr(request.pooling_params, "extra_kwargs", None):
        raise KeySpaceError("the model gets more than the request's tokens (extra_kwargs)")
    kind: Any = type(request)
    for name in sorted(_parameters(kind) - KNOWN_PARAMETERS):
        if getattr(request, name, None):
            raise KeySpaceError(f"it is not known here what {name} of a request does")


@cache
def _parameters(kind: type) -> frozenset[str]:
    """Return the names of a request's parameters."""
    return frozenset(signature(kind).parameters)


def _line(parts: Any) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode()
