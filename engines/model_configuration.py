"""Parts of a model's configuration that name rotary embeddings, code, and other models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

ROPES_OF_LENGTH: Final = ("dynamic", "longrope", "su")
"""Rotary embeddings that transformers chooses by the longest prompt of a batch, whoever else is in it."""
OTHER_MODELS: Final = ("audio_model_id", "text_model_id")
"""Entries that name a model of whose weights this one consists, beside those in its folder (Ultravox)."""


def entries(given: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each entry of a configuration, at whatever depth."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            yield str(name), value
            yield from entries(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from entries(value)


def rope_types(given: Any) -> Iterator[str]:
    """Yield every type of rotary embedding that a configuration names."""
    for name, value in entries(given):
        if name in ("rope_type", "type") and isinstance(value, str):
            yield value


def remote_code(given: Any) -> Iterator[str]:
    """Yield what a configuration says of code to run, also that of an encoder or another part of the model.

    Code of another model than the configuration's has "--" in it.
    """
    for name, value in entries(given):
        if name == "auto_map" and value:
            yield str(value)


def other_models(given: Any) -> Iterator[str]:
    """Yield the models that a configuration names as parts of this one."""
    for name, value in entries(given):
        if name in OTHER_MODELS and value:
            yield str(value)
