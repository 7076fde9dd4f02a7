"""What is said of how the programs are built is what their sources have."""

from pathlib import Path

import pytest

from experiments.simulator.scenario import Direct
from experiments.study import structure
from experiments.study.structure import importing, read_times_s
from experiments.study.structure import structure as rows


def test_imports_are_found_in_all_their_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    sources = {
        "plain.py": "import heapq",
        "member.py": "from simpy.core import Environment",
        "inside.py": "def f():\n    from heapq import heappush",
        "package.py": "from simpy import core",
        "none.py": "import heapqs\nfrom . import heapq_\n'import heapq'",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    assert importing(tmp_path, "heapq", "simpy") == ["inside.py", "member.py", "package.py", "plain.py"]
    assert importing(tmp_path, "simpy.core") == ["member.py", "package.py"]


def test_a_direct_pools_adapters_wait_for_its_lookup_and_carry_both_ways_at_once() -> None:
    alone_s, beside_s, began_s = read_times_s()
    assert beside_s == alone_s
    assert began_s == pytest.approx(Direct().lookup_s)


def test_each_is_done_in_one_place() -> None:
    """A second simulator, parser or plotter, or a part that knows the emulator's machine, fails here."""
    told = dict(rows())
    simulator = told["make tiers was a second simulator"]
    assert "; 0 of its " in simulator
    assert "experiments/policies/told.py (what a controller's pool is told in a replay:" in simulator
    assert (
        "experiments/simulate_faults/virtual_time.py (hosts, controller and pipeline themselves" in simulator
    )
    assert "another simulator" not in simulator
    assert told["Options were parsed in several places"] == (
        "options are parsed by 1 module of experiments/: experiments/options.py"
    )
    assert told["Four modules drew plots, each with helpers of its own"] == (
        "pictures are written by 1 module (experiments/pictures.py), pages by 1 "
        "(experiments/page/document.py)"
    )
    assert told["The emulator's machine ran through every simulated part"].startswith("0 of 31 modules")


def test_a_queue_of_events_anywhere_that_nobody_named_is_called_a_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "experiments" / "elsewhere"
    own.mkdir(parents=True)
    (own / "second.py").write_text("from heapq import heappush")
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    monkeypatch.setattr(structure, "EXPERIMENTS", tmp_path / "experiments")
    told = structure.one_simulator()
    assert told.endswith("have one: experiments/elsewhere/second.py (another simulator)")
