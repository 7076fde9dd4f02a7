"""Installed packages and environment variables that may change the numbers an engine computes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import metadata
from typing import Final

ENVIRONMENT: Final = (
    "ATEN_CPU_CAPABILITY", "DNNL_DEFAULT_FPMATH_MODE", "NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)  # fmt: skip
"""Environment variables of the engines' libraries that change numbers."""
PACKAGES: Final = (
    "amd-aiter", "bitsandbytes", "compressed-tensors", "deep-ep", "deep-gemm", "flash-attn", "flash-attn-4",
    "flashinfer-cubin", "flashinfer-python", "quack-kernels", "safetensors", "sgl-deep-gemm", "sgl-kernel",
    "sglang-kernel", "tilelang", "torchao", "transformers", "triton", "xformers",
)  # fmt: skip
"""Packages beside the engines and torch whose version may change numbers."""


def versions() -> dict[str, str | None]:
    """Return the version of each of `PACKAGES`, or None where it is not installed."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def plugins(groups: Iterable[str]) -> list[str]:
    """Return the installed plugins of these groups of entry points, each with its package's version."""
    points = [point for group in groups for point in metadata.entry_points(group=group)]
    packages = [(point, f"{point.dist.name} {point.dist.version}" if point.dist else "") for point in points]
    return sorted(f"{point.group} {point.name} {package}" for point, package in packages)


def library_environment() -> dict[str, str]:
    """Return the environment variables of the engines' libraries, empty where they are not set."""
    return {name: os.environ.get(name, "") for name in ENVIRONMENT}
