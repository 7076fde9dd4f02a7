"""One version for all distributions: the root's pyproject.toml says it, `make reference` copies it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from emulator.result import ROOT

SOURCE: Final = ROOT / "pyproject.toml"
FOLDERS: Final = {
    "weir": ".",
    "weir-switch": "v1model",
    "weir-client": "hostlib",
    "weir-codec": "kvcodec",
    "weir-engines": "engines",
}
"""Name of each distribution, and its folder."""
_OWN: Final = re.compile(r'^(version = ")[^"]+(")$|^(version: )\S+()$', re.MULTILINE)
_NEWEST: Final = re.compile(r"(the newest version, which is )\d+(?:\.\d+)+")
_PINNED: Final = re.compile(r'"(weir-[a-z]+)==[^"]+"')


def version() -> str:
    """Return the version that the next release has."""
    return str(tomllib.loads(SOURCE.read_text(encoding="utf-8"))["project"]["version"])


def generated_files() -> dict[Path, str]:
    """Return the text, with this version, of each file that states it."""
    paths = [ROOT / folder / "pyproject.toml" for folder in FOLDERS.values()]
    paths += [ROOT / "CITATION.cff", ROOT / "SECURITY.md"]
    return {path: _stated(path.read_text(encoding="utf-8"), version()) for path in paths}


def _stated(text: str, released: str) -> str:
    own = _OWN.sub(lambda found: f"{found[1] or found[3]}{released}{found[2] or ''}", text)
    own = _NEWEST.sub(rf"\g<1>{released}", own)
    return _PINNED.sub(rf'"\1=={released}"', own)
