"""Debian's Prometheus scrapes a running topology: every metric comes, every panel has data."""

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from emulator.metrics.catalogue import METRICS

ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's package prometheus"),
]
NEVER_HERE = {"weir_client_malformed_total", "weir_store_malformed_total"}
"""Their only label says what was wrong, and nothing is."""


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


@contextmanager
def prometheus(directory: Path, target: int) -> Iterator[str]:
    port = free_port()
    config = directory / "prometheus.yml"
    text = (ROOT / "dashboards" / "prometheus.yml").read_text()
    assert "127.0.0.1:9464" in text
    config.write_text(text.replace(":9464", f":{target}").replace("2s", "1s"))
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}"]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def query_range(url: str, expression: str, start_s: float, end_s: float) -> list[dict[str, Any]]:
    words = urllib.parse.urlencode({"query": expression, "start": start_s, "end": end_s, "step": 1})
    with closing(urllib.request.urlopen(f"{url}/api/v1/query_range?{words}", timeout=30)) as answer:
        said = json.load(answer)
    assert said["status"] == "success", (expression, said)
    result: list[dict[str, Any]] = said["data"]["result"]
    return result


def has_data(series: list[dict[str, Any]]) -> bool:
    return any(not math.isnan(float(value)) for one in series for _, value in one["values"])


def test_every_panel_of_the_dashboard_has_data_while_a_topology_runs(tmp_path: Path) -> None:
    target = free_port()
    options = "--requests 120 --hosts 3 --speed 2 --gpu-blocks 4 --dram-blocks 8 --scale 20000 --modes pool"
    command = [sys.executable, "-m", "experiments.run", *options.split(), "--metrics", str(target)]
    with prometheus(tmp_path, target) as url:
        began_s = time.time()
        played = subprocess.run(
            [*command, "--results", str(tmp_path)], capture_output=True, text=True, timeout=280, check=False
        )
        assert played.returncode == 0, played.stdout + played.stderr
        ended_s = time.time()
        suffix = {"histogram": "_bucket"}
        missing = [
            metric.name
            for metric in METRICS
            if not query_range(url, metric.name + suffix.get(metric.kind, ""), began_s, ended_s)
        ]
        assert set(missing) <= NEVER_HERE
        dashboard = json.loads((ROOT / "dashboards" / "weir.json").read_text())
        empty = [
            target["expr"]
            for panel in dashboard["panels"]
            for target in panel["targets"]
            if not has_data(
                query_range(url, target["expr"].replace("$__rate_interval", "5s"), began_s, ended_s)
            )
        ]
        assert not empty
        roles = query_range(url, "sum by (role) (weir_process_up)", began_s, ended_s)
        most = {one["metric"]["role"]: max(float(value) for _, value in one["values"]) for one in roles}
        assert most == {"node": 3, "store": 2, "switch": 1, "controller": 1}
