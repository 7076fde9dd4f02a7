"""A quota is found, however cgroups are mounted, and what is used of it counts as busy."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands.cores import BusyShare, find_quota, usable_cores

ROOT = Path(__file__).parents[2]
AFFINITY = len(os.sched_getaffinity(0))


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_without_a_quota_all_cores_are_usable(tmp_path: Path) -> None:
    write(tmp_path, own="0::/user.slice\n")
    write(tmp_path / "cgroup" / "user.slice", cpu__max="max 100000\n")
    assert find_quota(tmp_path / "cgroup", tmp_path / "own") is None
    assert usable_cores(tmp_path / "cgroup", tmp_path / "own") == AFFINITY
    assert usable_cores(tmp_path / "nothing", tmp_path / "nothing") == AFFINITY


@pytest.mark.parametrize("own", ["0::/\n", "0::/docker/abc\n"])
def test_the_quota_of_a_container_in_version_2(tmp_path: Path, own: str) -> None:
    """Inside, its own group is the top folder, whatever /proc says."""
    write(tmp_path, own=own)
    write(tmp_path / "cgroup", cpu__max="50000 100000\n", cpu__stat="usage_usec 2500000\nnr_periods 1\n")
    quota = find_quota(tmp_path / "cgroup", tmp_path / "own")
    assert quota is not None
    assert (quota.cores, quota.used_s()) == (0.5, 2.5)
    assert usable_cores(tmp_path / "cgroup", tmp_path / "own") == 0.5


def test_the_tightest_quota_above_counts(tmp_path: Path) -> None:
    write(tmp_path, own="0::/a/b\n")
    write(tmp_path / "cgroup" / "a", cpu__max="30000 100000\n")
    write(tmp_path / "cgroup" / "a" / "b", cpu__max="90000 100000\n")
    assert usable_cores(tmp_path / "cgroup", tmp_path / "own") == 0.3


def test_the_quota_of_version_1(tmp_path: Path) -> None:
    write(tmp_path, own="4:cpu,cpuacct:/x\n1:memory:/y\n0::/\n")
    write(tmp_path / "cgroup" / "cpu" / "x", cpu__cfs_quota_us="150000\n", cpu__cfs_period_us="100000\n")
    write(tmp_path / "cgroup" / "cpuacct" / "x", cpuacct__usage="7000000000\n")
    quota = find_quota(tmp_path / "cgroup", tmp_path / "own")
    assert quota is not None
    assert (quota.cores, quota.used_s()) == (1.5, 7.0)


def test_who_uses_up_a_quota_is_busy(tmp_path: Path) -> None:
    write(tmp_path, own="0::/\n")
    write(tmp_path / "cgroup", cpu__max="1000 1000000\n", cpu__stat="usage_usec 0\n")
    share = BusyShare(find_quota(tmp_path / "cgroup", tmp_path / "own"))
    write(tmp_path / "cgroup", cpu__stat="usage_usec 900000000\n")
    assert share.take() == 1.0


def test_a_real_quota_is_seen_by_who_is_under_it(tmp_path: Path) -> None:
    top = Path("/sys/fs/cgroup/cpu")
    if os.geteuid() != 0 or not os.access(top / "cpu.shares", os.W_OK):
        pytest.skip("no cgroups (version 1) that this process may make")
    group = top / f"weir-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_quota_us").write_text("40000")
        code = "from commands.cores import usable_cores; print(usable_cores())"
        join = f'echo $$ >{group}/cgroup.procs; exec "$@"'
        command = ["sh", "-c", join, "sh", sys.executable, "-c", code]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert float(said.stdout) == pytest.approx(0.4)
    finally:
        group.rmdir()


def test_programs_start_as_many_processes_as_they_may_use_cores() -> None:
    """taskset stands for a quota: `os.cpu_count` names the machine's cores in both."""
    alone = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    help_of = [sys.executable, "-m", "experiments.policies", "--help"]
    said = subprocess.run([*alone, *help_of], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(r"--jobs X\s+Number of replays at once. \[1 to 256\] \(default: 1\)", said)
