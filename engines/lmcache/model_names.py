"""Weights that LMCache's multiprocess server means by a model's name: the content of the model's folder here.

The server is told the name alone. If it is that of a folder, or of a model in the hub's cache, the content is
part of every chunk's name. If that content changes while the server runs, nobody can tell any more which
weights a chunk is of. So the model's chunks are neither kept nor found until the server starts again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from engines.identity import ModelFiles, in_background, located, process_start_s
from hostlib.protocol.errors import KeySpaceError

CHECK_S: Final = 1.0
"""Least seconds between two looks at a model's files."""
MAX_MODELS: Final = 256
"""Models whose names are remembered; those that were used first are hashed again."""
UNKNOWN: Final = ""
"""The name of weights that are not on this machine."""

_log = logging.getLogger("weir")


@dataclass(slots=True)
class _Model:
    files: ModelFiles | None
    """None where its weights are not on this machine."""
    name: Future[str]
    checked_s: float
    is_left: bool = False


@cache
def tell_what_names_lack() -> None:
    """Say once what LMCache's names of chunks do not have."""
    _log.warning(
        "LMCache's names of chunks lack adapters, the engine's version, the order of KV in its memory, and "
        "options that change the KV of the same weights (hf_overrides, quantization, max_model_len with "
        "LongRoPE). They have images by the identifiers that callers choose. Give engines that differ in "
        "these a tenant each. They have nothing of prompts given as embeddings, which all find one another's "
        "KV: leave enable_prompt_embeds off."
    )


class ModelNames:
    """See the module. May be used from several threads."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, _Model] = OrderedDict()
        self._changing = threading.Lock()

    def of(self, model: str) -> str | None:
        """Return the name of a model's weights; None if its chunks can't be kept or found now."""
        with self._changing:
            known = self._models.get(model)
            if known is None:
                known = self._models[model] = self._begin(model)
                if len(self._models) > MAX_MODELS:
                    self._models.popitem(last=False)
            self._models.move_to_end(model)
            self._check(model, known)
            if known.is_left or not known.name.done():
                return None
            try:
                return known.name.result()
            except KeySpaceError as error:
                self._leave(model, known, str(error))
                return None

    def wait(self, model: str, timeout_s: float) -> None:
        """Wait until a model's files are hashed, so long at most."""
        self.of(model)
        with self._changing:
            name = self._models[model].name
        name.exception(timeout_s)

    def _begin(self, model: str) -> _Model:
        now_s = time.monotonic()
        if not Path(model).is_absolute() and Path(model).exists():
            relative = _Model(None, _named(UNKNOWN), now_s)
            self._leave(model, relative, "it is a relative path, which means another folder to each process")
            return relative
        try:
            files = ModelFiles.of(located(model))
        except KeySpaceError:
            _log.warning(
                "The weights of %r are not on this machine, so that LMCache's chunks have its name alone: "
                "give engines with other weights under this name a tenant of their own.",
                model,
            )
            return _Model(None, _named(UNKNOWN), now_s)
        name = in_background(files.identity)
        began = _Model(files, name, now_s)
        changed = files.changed_after(process_start_s())
        if changed is not None:
            self._leave(model, began, f"{changed} was written after the server started")
        return began

    def _check(self, model: str, known: _Model) -> None:
        """Leave a model whose files are others by now."""
        now_s = time.monotonic()
        if known.files is None or known.is_left or now_s - known.checked_s < CHECK_S:
            return
        known.checked_s = now_s
        try:
            files = ModelFiles.of(located(model))
            is_same = (files.states, files.links) == (known.files.states, known.files.links)
        except KeySpaceError:
            is_same = False
        if not is_same:
            self._leave(model, known, "its files have changed")

    def _leave(self, model: str, known: _Model, why: str) -> None:
        known.is_left = True
        _log.warning("KV of %r is not shared until LMCache's server starts again: %s.", model, why)


def _named(name: str) -> Future[str]:
    """Return a future of a name that is known."""
    named: Future[str] = Future()
    named.set_result(name)
    return named
