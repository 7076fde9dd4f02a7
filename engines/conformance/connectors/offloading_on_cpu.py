"""vLLM's tiered offloading on a CPU: its classes, with memmove in place of CUDA's asynchronous copies."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from vllm.v1.kv_offload.base import CanonicalKVCaches
from vllm.v1.kv_offload.cpu import gpu_worker
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec

from engines.conformance.connectors.cpu_stand_ins import DoneEvent


class _DeviceTensor(torch.Tensor):  # type: ignore[misc] # torch is not in the project's environment
    """A tensor that says it is a GPU's, as vLLM's worker asserts."""

    is_cuda = True


class _TorchWithEvents:
    """torch, with events that need no device."""

    Event = DoneEvent

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _copy(sources: Any, targets: Any, sizes: Any, **_: Any) -> None:
    """Copy bytes between addresses, as `swap_blocks_batch` does on a GPU."""
    for source, target, size in zip(sources.tolist(), targets.tolist(), sizes.tolist(), strict=True):
        ctypes.memmove(target, source, size)


class TieringOnCpu(TieringOffloadingSpec):  # type: ignore[misc] # vllm is not in the project's environment
    """See the module."""

    _worker: Any

    def get_worker(self, kv_caches: CanonicalKVCaches) -> Any:
        """Return the worker of vLLM's, without asking for the platform."""
        if not self._worker:
            gpu_worker.torch = _TorchWithEvents()
            gpu_worker._select_swap_blocks_fn = lambda *_, **__: _copy
            for one in kv_caches.tensors:
                object.__setattr__(one, "tensor", one.tensor.as_subclass(_DeviceTensor))
            self._worker = self.create_worker(kv_caches)
        return self._worker
