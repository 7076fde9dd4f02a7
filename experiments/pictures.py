"""Pictures as files, which matplotlib draws without a display. What pages show is in `experiments/page`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from commands.command import Screen

KINDS = ("png", "svg")


def can_draw(screen: Screen) -> bool:
    """Return whether there is what draws; where there is not, it is said."""
    if find_spec("matplotlib") is not None:
        return True
    screen.say("The plots as SVG files are left out: matplotlib is not installed (make setup-all).")
    return False


def panels(rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Figure, Any]:
    """Return a figure of so many inches and its axes, as matplotlib's subplots gives them."""
    figure: Figure
    figure, axes = _pyplot().subplots(rows, columns, figsize=size, layout="constrained", **more)
    return figure, axes


def save(figure: Figure, folder: Path, name: str, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write a file of each kind and return them; the same figure is the same file. Text of an SVG stays text:
    a third the size."""
    folder.mkdir(parents=True, exist_ok=True)
    plt = _pyplot()
    found = [folder / f"{name}.{kind}" for kind in kinds]
    with plt.rc_context({"svg.hashsalt": "weir", "svg.fonttype": "none"}):
        for path in found:
            figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
    return found


def _pyplot() -> Any:
    """Return pyplot, which takes a second to import."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def named_after(trace: str) -> str:
    """Return what a trace's pictures are called."""
    return re.sub(r"[^A-Za-z0-9]+", "_", Path(trace).stem).strip("_")
