"""Installed packages and environment variables that may change the numbers an engine computes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = (
    "ATEN_CPU_CAPABILITY", "DNNL_DEFAULT_FPMATH_MODE", "NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TRITON_F32_DEFAULT",
)  # fmt: skip
"""Environment variables of the engines' libraries that change numbers."""
PACKAGES: Final = (
    "amd-aiter", "bitsandbytes", "compressed-tensors", "deep-ep", "deep-gemm", "flash-attn", "flash-attn-4",
    "flashinfer-cubin", "flashinfer-python", "quack-kernels", "safetensors", "sgl-deep-gemm", "sgl-kernel",
    "sglang-kernel", "tilelang", "torchao", "transformers", "triton", "xformers",
)  # fmt: skip
"""Packages beside the engines and torch whose version may change numbers."""
CHANGED_SOURCES: Final = re.compile(r"\.d20\d{6}\b")
"""Mark that setuptools-scm writes into the version of a package that was built from changed sources."""


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


def without_name(packages: Iterable[str], groups: Iterable[str]) -> list[str]:
    """Return why the version of a package does not say which code it has, for each of which that is so.

    Looked at are those of `packages` that are installed, `PACKAGES`, and the plugins of these groups. A
    folder from which a package was installed may hold other code tomorrow, under the same version.
    """
    found = {
        point.dist.name: point.dist
        for group in groups
        for point in metadata.entry_points(group=group)
        if point.dist
    }
    for name in (*packages, *PACKAGES):
        try:
            found.setdefault(name, metadata.distribution(name))
        except metadata.PackageNotFoundError:
            continue
    return sorted(reason for one in found.values() if (reason := _why_nameless(one)))


def plugin_packages(groups: Iterable[str]) -> set[str]:
    """Return the names of the packages that the plugins of these groups are imported from."""
    return {
        point.module.partition(".")[0] for group in groups for point in metadata.entry_points(group=group)
    }


def _why_nameless(package: metadata.Distribution) -> str:
    """Return why a package's version does not name its code; empty where it does."""
    name, version = package.name, package.version
    if CHANGED_SOURCES.search(version):
        return f"{name} {version} was built from changed sources"
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        return f"{name} {version} does not say where it was installed from"
    if isinstance(origin, dict) and "dir_info" not in origin:
        changed = _changed_file(package)
        return f"{changed} of {name} {version} has changed since it was installed" if changed else ""
    return f"{name} {version} was installed from a folder, whose code may change without its version"


def _changed_file(package: metadata.Distribution) -> str:
    """Return a source file of a package that is another one than was installed; empty where there is none.

    A file's content is looked at if it is younger than the list that the installer wrote at the end.
    """
    files = package.files or []
    lists = [Path(str(package.locate_file(file))) for file in files if file.name == "RECORD"]
    listed_ns = min((one.stat().st_mtime_ns for one in lists if one.exists()), default=0)
    for file in files:
        if file.suffix != ".py" or file.hash is None:
            continue
        path = Path(str(package.locate_file(file)))
        try:
            state = path.stat()
            is_same = state.st_size == file.size and (
                state.st_mtime_ns <= listed_ns or _digest(path, file.hash.mode) == file.hash.value
            )
        except (OSError, ValueError):  # removed from an image to make it smaller, or hashed otherwise
            continue
        if not is_same:
            return str(file)
    return ""


def _digest(path: Path, algorithm: str) -> str:
    """Return the digest of a file as an installer's list has it."""
    with path.open("rb") as file:
        return base64.urlsafe_b64encode(hashlib.file_digest(file, algorithm).digest()).rstrip(b"=").decode()
