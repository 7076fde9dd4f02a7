"""Pictures of runs as files."""

from pathlib import Path

import pytest

from experiments.pictures import named_after, panels, save


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_figure_is_the_same_file(kind: str, tmp_path: Path) -> None:
    written = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        figure, axes = panels(1, 1, (3, 2))
        axes.plot([1, 2], [3, 4], label="a line")
        axes.legend()
        (path,) = save(figure, folder, "picture", (kind,))
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert kind == "png" or b"a line" in written[0]


def test_a_picture_is_named_after_its_trace() -> None:
    assert named_after("/data/a trace.v2.jsonl") == "a_trace_v2"
