"""Identity of a model or an adapter: the whole content of its files, because KV cache of other weights is
wrong.

Hashing reads every byte once, on all cores at low priority. The result for each file is kept on disk under
its inode, size, times and path (`engines.digests`), so that the next start takes no time.
"""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engines.digests import FileState, digest_of
from engines.model_configuration import other_models
from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HARMLESS_FILES: Final = (
    "tokenizer*", "vocab.*", "merges.txt", "special_tokens_map.json", "added_tokens.json", "chat_template*",
    "generation_config.json", "*.md", "LICENSE*", "NOTICE*", "USE_POLICY*", "*.png", "*.jpg", "*.jpeg",
    "*.svg", "*.gif", "*.pdf", "trainer_state.json",
)  # fmt: skip
"""Files that do not change the KV of given tokens, by their names. All others count."""
COUNTED_FILES: Final = (
    "*.bin", "*.ckpt", "*.gguf", "*.npz", "*.pt", "*.pth", "*.py", "*.safetensors", "*.so",
)  # fmt: skip
"""Weights and code, which count under any name: a codec's weights are called `tokenizer-….safetensors`."""
LEFT_BY_TRAINING: Final = (
    "training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state*.pth",
)  # fmt: skip
"""Files of a trainer that look like weights; no engine reads them."""
HARMLESS_FOLDERS: Final = ("__pycache__", "original")
"""Folders that engines don't load from, as hidden ones: Llama's `original` holds the same weights again."""
INDIFFERENT: Final = ("_name_or_path", "transformers_version", "use_cache", "base_model_name_or_path")
"""Entries of a configuration file that do not change what the weights compute."""
CONFIGURATIONS: Final = ("config.json", "adapter_config.json")
MAX_FILES: Final = 100_000
MAX_LINKS: Final = 40
MAX_CONFIGURATION_BYTES: Final = 64 << 20


def model_identity(model: str | Path) -> str:
    """Return a name for the content of a model's or an adapter's folder, or of a file of weights.

    Raises KeySpaceError for what is no file or folder on this machine, holds nothing, or changes meanwhile.
    """
    return ModelFiles.of(model).identity()


def process_start_s() -> float:
    """Return the time at which this process started, on the clock of files' times."""
    stat = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age_s


def loaded_identity(
    model: str, loaded_after_s: float, revision: str | None = None, hub_cache: str | None = None
) -> str:
    """Return the name of the content that an engine loaded from `model` at some time after `loaded_after_s`.

    `model` is a folder, a file of weights, or the name of a model in the Hugging Face hub's cache here.
    Raises KeySpaceError if it is none of these, or changed since, so that the engine may have loaded another.
    """
    folder, reference = _located(model, revision, hub_cache)
    files = ModelFiles.of(folder)
    name = files.identity()
    changed = files.changed_after(loaded_after_s)
    if reference is not None and FileState.of(reference).changed_s >= loaded_after_s:
        changed = str(reference)
    if changed is not None:
        raise KeySpaceError(
            f"{changed} was written after the engine started, so it may not be what the engine loaded; "
            "start the engine again"
        )
    return name


def nameable(name: Callable[[], str]) -> Callable[[], str]:
    """Return a function that returns what `name` returns. It raises KeySpaceError for whatever goes wrong."""

    def named() -> str:
        try:
            return name()
        except KeySpaceError:
            raise
        except Exception as error:
            raise KeySpaceError(f"files can't be named: {error!r}") from error

    return named


def in_background(name: Callable[[], str]) -> Future[str]:
    """Return a future of what `name` returns, which runs in a thread of its own.

    The future raises KeySpaceError for what can't be named or read, whatever the reason.
    """
    named: Future[str] = Future()

    def run() -> None:
        try:
            named.set_result(nameable(name)())
        except BaseException as error:
            named.set_exception(error)

    threading.Thread(target=run, name="weir weights", daemon=True).start()
    return named


@dataclass(frozen=True)
class ModelFiles:
    """The files that decide about a model's KV, as they were when they were listed."""

    root: Path
    states: tuple[tuple[str, FileState], ...]
    """State of each file, by its path within the root, in order."""
    links: tuple[tuple[str, FileState], ...]
    """State of each link on the way to a file, and of each folder from the root on."""
    above: tuple[Path, ...]
    """The folders above the root and above what links lead to."""

    @classmethod
    def of(cls, model: str | Path) -> ModelFiles:
        """List them. Raises KeySpaceError for what is no file or folder on this machine, or holds nothing."""
        root = Path(model)
        try:
            if root.is_dir():
                found = sorted(_decisive(root))
            elif root.is_file():
                found = [root]
            else:
                raise KeySpaceError(f"{model} is no file or folder on this machine")
            if not found:
                raise KeySpaceError(f"{root} holds no files of a model")
            names = [str(path.relative_to(root)) if path != root else "" for path in found]
            states = tuple((name, FileState.of(path)) for name, path in zip(names, found, strict=True))
            return cls(root, states, *_way(root, found))
        except OSError as error:
            raise KeySpaceError(f"{root} can't be read: {error}") from None

    def changed_after(self, time_s: float) -> str | None:
        """Return what may have changed after `time_s`, or None if nothing has."""
        for name, state in (*self.states, *self.links):
            if state.changed_s >= time_s:
                return str(self.root / name) if name else str(self.root)
        for folder in self.above:
            state = FileState.of(folder)
            # Entries that come or go change both times of a folder; moving it changes one.
            if state.changed_s >= time_s and state.ctime_ns != state.mtime_ns:
                return str(folder)
        return None

    def identity(self) -> str:
        """Return the name of their content. Raises KeySpaceError if anything changes while it is read."""
        content = sha256()
        for name, state in self.states:
            path = self.root / name
            digest = _configuration(path) if path.name in CONFIGURATIONS else digest_of(path, state)
            content.update(os.fsencode(f"{len(name)}:{name}:{digest}\n"))
        now = ModelFiles.of(self.root)
        if (now.states, now.links) != (self.states, self.links):
            raise KeySpaceError(f"{self.root} changes while it is read")
        return f"content:{content.hexdigest()[:32]}"


def located(model: str) -> Path:
    """Return the folder or file of a model's name on this machine; KeySpaceError if it is not here."""
    return _located(model, None, None)[0]


def _located(model: str, revision: str | None, hub_cache: str | None) -> tuple[Path, Path | None]:
    """Return the folder of a model; if it came from a hub, also the file that says which commit its revision
    is."""
    if Path(model).exists():
        return Path(model), None
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(model, revision=revision, cache_dir=hub_cache, local_files_only=True))
    except (ImportError, OSError, ValueError) as error:
        raise KeySpaceError(f"{model} is neither a folder nor in the hub's cache here: {error}") from None
    reference = folder.parent.parent / "refs" / (revision or "main")
    return folder, reference if reference.is_file() else None


def _decisive(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder except those that are known to be harmless."""
    count = 0
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in HARMLESS_FOLDERS]
        count += len(names) + len(folders)
        if count > MAX_FILES:
            raise KeySpaceError(f"{folder} holds more than {MAX_FILES} files: give the folder of one model")
        for name in names:
            if not _is_harmless(name):
                yield Path(parent) / name


def _is_harmless(name: str) -> bool:
    if name.startswith(".") or _is_one_of(name, LEFT_BY_TRAINING):
        return True
    return _is_one_of(name, HARMLESS_FILES) and not _is_one_of(name.lower(), COUNTED_FILES)


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _way(root: Path, files: list[Path]) -> tuple[tuple[tuple[str, FileState], ...], tuple[Path, ...]]:
    """Return the states of links and of the model's own folders on the way to the files, and the folders
    above."""
    links: dict[str, FileState] = {}
    above: set[Path] = set()
    inside = {parent for file in files for parent in file.parents if parent == root or root in parent.parents}
    for path in {*files, *inside}:
        _follow(path.absolute(), links, above, MAX_LINKS)
    own = {f"{folder}/": FileState.of(folder) for folder in inside}
    above -= {folder.resolve() for folder in inside} | {folder.absolute() for folder in inside}
    return tuple(sorted((links | own).items(), key=lambda one: one[0])), tuple(sorted(above))


def _follow(path: Path, links: dict[str, FileState], above: set[Path], left: int) -> None:
    """Note each link on the way to `path`, also those that links lead over, and the folders above."""
    if not left:
        raise KeySpaceError(f"{path} leads over too many links")
    for part in (*reversed(path.parents), path):
        if str(part) in links:
            continue
        if part.is_symlink():
            links[str(part)] = FileState.of(part, follow=False)
            _follow(part.parent / part.readlink(), links, above, left - 1)
        elif part != path:
            above.add(part)


def _configuration(path: Path) -> str:
    """Return the digest of what a configuration says, in whatever order and spacing."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIGURATION_BYTES + 1)
        if len(content) > MAX_CONFIGURATION_BYTES:
            raise KeySpaceError(f"{path} is no configuration: it has over {MAX_CONFIGURATION_BYTES} bytes")
        given = json.loads(content)
        others = sorted(other_models(given))
    except (OSError, ValueError, RecursionError) as error:
        raise KeySpaceError(f"{path} can't be read: {error}") from None
    if others:
        raise KeySpaceError(f"{path} names other models as parts of this one: {', '.join(others)}")
    if isinstance(given, dict):
        given = {name: value for name, value in given.items() if name not in INDIFFERENT}
    return sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
