"""On a quiet machine: three servers carry what one can't."""

from pathlib import Path

import pytest

from tests.cluster.runs import run
from tests.cluster.servers import make_servers, missing

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
CORES = 0.5
LARGE = (
    "--topo", "leafspine", "--hosts", "256", "--stores", "6", "--leaves", "6", "--spines", "2",
    "--requests", "640", "--link-gbit", "50", "--speed", "2", "--scale", "40000", "--modes", "pool",
)  # fmt: skip


def test_three_servers_keep_up_with_256_nodes_and_one_does_not(tmp_path: Path) -> None:
    """Each has half a core."""
    names = ("a", "b", "c")
    with make_servers(names, CORES) as made:
        made.copy_checkout()
        three = run(tmp_path / "three", LARGE, made.write_file(names))
        one = run(tmp_path / "one", LARGE, made.write_file(names[:1]))
    for which, measured in (("three", three), ("one", one)):
        print(which, measured["cpu_share"], measured["timer_late_p99_ms"], measured["complaints"])
    assert one["overloaded"]
    assert not three["overloaded"], three["complaints"]
