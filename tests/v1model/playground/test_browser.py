"""The page in Debian's browser: errors at their lines, a packet's way, a time line, a file out and in."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.browser import CHROMIUM, needs_chromium
from tests.v1model.playground.test_run import CHOICES, CHOOSING, PROGRAM, document
from v1model.playground import server as playground

# A script of the test beside the page's own: it does what a user does, and leaves what it finds in the page.
CHECK = """
const sleep = ms => new Promise(done => setTimeout(done, ms));
const failures = [];
addEventListener("error", event => failures.push(String(event.message)));
async function until(what, condition) {
  for (let i = 0; i < 3000; i++) { if (condition()) return; await sleep(20); }
  throw new Error(`never came true: ${what}`);
}
const status = () => document.getElementById("status").textContent;
function openFile(id, name, text) {
  const files = new DataTransfer(), input = document.getElementById(id);
  files.items.add(new File([text], name));
  document.getElementById("status").textContent = "";
  input.files = files.files;
  input.dispatchEvent(new Event("change"));
}
const texts = selector => [...document.querySelectorAll(selector)].map(one => one.textContent);
const found = {};
try {
  await until("the pool's walk", () => status() === "ran 4 packets");
  found.opens = texts("#timeline button");
  openFile("open", "wrong.json", WRONG);
  await until("errors", () => status() === "1 error");
  found.problem = texts("#problems button");
  document.querySelector("#problems button").click();
  found.marks = document.querySelectorAll(".cm-lint-marker-error, .cm-lintRange-error").length;
  openFile("open", "right.json", RIGHT);
  await until("packets", () => status() === "ran 2 packets");
  found.stages = texts("#walk .copy .stage h3");
  found.table = texts("#walk [data-stage=ingress] li").filter(text => text.startsWith("I.route"));
  const inputs = document.querySelectorAll("#entries tbody input, #entries tbody select");
  found.entries = [...inputs].map(one => one.value);
  document.querySelectorAll("#timeline button")[1].click();
  found.second = texts("#walk .dropped h3");
  found.state = texts("#state tr.changed");
  let saved = null;
  URL.createObjectURL = blob => { saved = blob; return "#"; };
  document.getElementById("save").click();
  found.saved = JSON.parse(await saved.text());
  const entry = document.querySelector("#entries tbody input[aria-label=match]");
  entry.value = "2";
  document.getElementById("status").textContent = "";
  entry.dispatchEvent(new Event("input"));
  await until("another run", () => status() === "ran 2 packets");
  found.edited = texts("#timeline button");
  openFile("open", "choices.json", CHOICES);
  await until("outcomes", () => texts("#outcomes button").length === 3);
  found.outcomes = texts("#outcomes button");
  document.querySelectorAll("#outcomes button")[2].click();
  found.otherwise = texts("#walk .out h3");
} catch (error) { failures.push(String(error)); }
const out = document.createElement("pre");
out.id = "out";
out.textContent = JSON.stringify({failures, found});
document.body.append(out);
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the script found."""
    page = tmp_path / "page"
    shutil.copytree(playground.PAGE, page)
    wrong = json.dumps(document(PROGRAM.replace("h.k.value = 9", "h.k.value = nine")))
    script = CHECK.replace("WRONG", json.dumps(wrong)).replace("RIGHT", json.dumps(json.dumps(document())))
    choices = json.dumps(document(CHOICES, commands=CHOOSING))
    script = script.replace("CHOICES", json.dumps(choices))
    (page / "check.js").write_text(script)
    index = page / "index.html"
    index.write_text(
        index.read_text().replace("</body>", '<script type="module" src="check.js"></script></body>')
    )
    monkeypatch.setattr(playground, "PAGE", page)
    monkeypatch.setitem(playground.FILES, "check.js", ("check.js", "text/javascript"))
    with playground.PlaygroundServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            done = subprocess.run(
                [
                    str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu",
                    f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1600,1200",
                    "--virtual-time-budget=600000", "--dump-dom", server.url,
                ],
                capture_output=True, text=True, timeout=240, check=True,
            )  # fmt: skip
        finally:
            server.shutdown()
            thread.join()
    said = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.S)
    assert said, done.stdout[-2000:] + done.stderr[-2000:]
    answer = json.loads(html.unescape(said[1]))
    assert answer["failures"] == [], answer
    found: dict[str, Any] = answer["found"]
    return found


@pytest.mark.slow
@needs_chromium
def test_the_page_does_what_it_is_for(seen: dict[str, Any]) -> None:
    assert [text.split(", ", 1)[1] for text in seen["opens"]] == [
        "out by 9",
        "nothing comes out",
        "out by 1, 2",
        "out by 3",
    ]
    (problem,) = seen["problem"]
    assert problem.startswith("line 17: 'nine' is not declared")
    assert seen["marks"] > 0
    assert seen["stages"][:3] == ["Comes in", "Parser", "Ingress"]
    assert seen["stages"][-1] == "Out by port 7"
    assert seen["table"] == ["I.route [h.k.key=1] hit (0x1) → I.to(port=7)"]
    assert seen["entries"] == ["I.route", "1", "I.to", "7", ""]
    assert seen["second"] == ["Dropped: ingress"]
    assert seen["state"] == ["I.last[1]2"]
    assert seen["saved"] == document()
    assert seen["edited"] == ["1: in by 1, nothing comes out", "2: in by 1, out by 7"]
    assert seen["outcomes"] == ["as it was", *(f"I.paths: group 1 chooses member {n}" for n in (1, 2))]
    assert seen["otherwise"] == ["Out by port 8"]
