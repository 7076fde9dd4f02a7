"""Errors that the parts of vLLM's connector raise to one another."""

from __future__ import annotations

from hostlib.protocol.errors import KeySpaceError


class AdapterChangedError(KeySpaceError):
    """An adapter has other content than before, under the name and path by which vLLM caches its KV."""
