"""A page in Debian's browser: what a script finds in it, at any width."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium")

_FIRST = """<script>window.failures = [];
addEventListener("error", event => failures.push(String(event.message)));</script>"""
_LAST = """<script>addEventListener("load", () => setTimeout(() => {
  let found = null;
  try { found = (() => {%s})(); } catch (error) { failures.push(String(error)); }
  parent.postMessage(JSON.stringify({failures: failures, found: found}), "*");
}, 300));</script>"""
_FRAME = """<!doctype html><body style="margin:0"><pre id="out"></pre>
<iframe src="%s" style="width:%dpx;height:1000px;border:0"></iframe>
<script>
addEventListener("message", event => document.getElementById("out").textContent = event.data);
</script>"""


def look(page: Path, width_px: int, script: str, directory: Path, query: str = "") -> Any:
    """What `script`, the body of a function, returns when run in the page; fails if anything failed in it.

    The page is in a frame of that width, because a browser's window can't be as narrow as a telephone.
    """
    text = page.read_text()
    assert text.count("<head>") == 1
    inside = directory / "inside.html"
    inside.write_text(
        text.replace("<head>", "<head>" + _FIRST).replace("</body>", _LAST % script + "</body>")
    )
    frame = directory / "frame.html"
    frame.write_text(_FRAME % (inside.name + query, width_px))
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
            f"--user-data-dir={directory / 'profile'}", "--window-size=1600,1200",
            "--virtual-time-budget=8000", "--dump-dom", frame.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    said = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.S)
    assert said, done.stdout[:2000] + done.stderr[-2000:]
    assert said[1], "the page did not load"
    answer = json.loads(html.unescape(said[1]))
    assert answer["failures"] == []
    return answer["found"]
