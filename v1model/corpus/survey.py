"""Compilation of every v1model program below a folder, with the results sorted by reason."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from v1model import isolation
from v1model.compile import compile_text
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend.preprocess import PreprocessorError, preprocess

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from v1model.isolation import Outcome

TIMEOUT_S = 120.0
# Results in the order of the summary.
COMPILED = "compiled"
UNSUPPORTED = "unsupported"  # legal P4_16 that the embedded switch does not have
REFUSED = "refused"  # the checker found an error
UNREADABLE = "unreadable"  # the preprocessor failed: an include is missing, for example
C_FAILED = "C compiler failed"
CRASHED = "crashed"  # or ran out of time
RESULTS = (COMPILED, UNSUPPORTED, REFUSED, UNREADABLE, C_FAILED, CRASHED)

# A program has the package's instance, itself or in a file that it includes.
_MAIN = re.compile(r"\bV1Switch\s*(<[^;]*>)?\s*\(")
_BLOCK = re.compile(r"\b(parser|control)\s+\w+")
_SPECIFIC = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+\b")


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def find_programs(root: Path, include: Sequence[Path] = ()) -> list[Path]:
    """Return the *.p4 files below `root` (or `root` itself) that instantiate V1Switch.

    The instance may be in a file that they include. A file that only completes others, which define what it
    instantiates, is left out.
    """
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*.p4") if path.is_file())
    texts = {path.resolve(): path.read_text(errors="replace") for path in files}
    included: set[Path] = set()
    programs = []
    for path in files:
        reached = _reached(path.resolve(), texts, include)
        if any(_MAIN.search(texts[file]) for file in reached):
            programs.append(path)
            included |= reached - {path.resolve()}
    return [path for path in programs if path.resolve() not in included or _has_blocks(texts[path.resolve()])]


def _reached(path: Path, texts: dict[Path, str], include: Sequence[Path]) -> set[Path]:
    """Return a file and all readable files that it includes; adds their texts to `texts`."""
    reached, waiting = {path}, [path]
    while waiting:
        file = waiting.pop()
        for name in _INCLUDE.findall(texts[file]):
            for folder in (file.parent, path.parent, *include):
                found = (folder / name).resolve()
                if found.is_file():
                    if found not in reached:
                        texts.setdefault(found, found.read_text(errors="replace"))
                        reached.add(found)
                        waiting.append(found)
                    break
    return reached


def _has_blocks(text: str) -> bool:
    return bool(_BLOCK.search(text))


def survey(
    root: Path, jobs: int, include: Sequence[Path] = (), timeout_s: float = TIMEOUT_S
) -> Iterator[Outcome]:
    """Yield outcomes in the order in which programs are done."""
    top = root.parent if root.is_file() else root
    tasks = [(path.relative_to(top).as_posix(), path) for path in find_programs(root, include)]
    return isolation.run_all(tasks, partial(compile_one, include=include), CRASHED, jobs, timeout_s)


def compile_one(path: Path, include: Sequence[Path] = ()) -> tuple[str, str]:
    """Return (result, reason) of one program, compiled in this process; a quick build suffices."""
    try:
        compile_text(preprocess(path, [path.parent, *include]), str(path), quick=True)
    except PreprocessorError as error:
        return UNREADABLE, error.render()
    except UnsupportedError as error:
        return UNSUPPORTED, error.render()
    except CompileError as error:
        return (REFUSED if error.span else C_FAILED), error.render()
    return COMPILED, ""


def reason_class(reason: str) -> str:
    """Return a reason without the place, names and numbers of its program."""
    message = reason.split("\n", 1)[0].rpartition("error: ")[2]
    return _SPECIFIC.sub("…", message)


def summary(outcomes: Iterable[Outcome]) -> dict[str, object]:
    """Return the programs by result, classes of reasons by the number of their programs, and each program."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.name)
    classes = Counter(f"{o.result}: {reason_class(o.reason)}" for o in ordered if o.reason)
    return {
        "programs": len(ordered),
        **{result: sum(o.result == result for o in ordered) for result in RESULTS},
        "reasons": dict(classes.most_common()),
        "outcomes": {o.name: {"result": o.result, "reason": o.reason} for o in ordered},
    }
