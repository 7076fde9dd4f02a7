"""The site in a browser: pages fit telephones and screens, and search needs no internet."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.experiments.browser import look, needs_chromium

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
PAGES = ("index.html", "findings.html", "reference.html", "walks/p4.html")
LOOK = """
const wide = one => one.getBoundingClientRect().width > 0;
return {wide: document.documentElement.scrollWidth - innerWidth,
        scheme: document.body.getAttribute("data-md-color-scheme"),
        search: [...document.querySelectorAll("[for=__search]")].some(wide),
        broken: [...document.images].filter(image => !image.complete || !image.naturalWidth).length,
        raw: document.querySelector("article").textContent.includes("```")};
"""

pytestmark = [
    pytest.mark.slow,
    needs_chromium,
    pytest.mark.skipif(not MKDOCS.exists(), reason="needs .venv-docs: make docs"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [str(MKDOCS), "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


@pytest.mark.parametrize(("width_px", "scheme"), [(400, "slate"), (1400, "default")])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits(site: Path, page: str, scheme: str, width_px: int) -> None:
    shown = site / page
    text = shown.read_text()
    tried = shown.with_name(f"tried-{shown.name}")
    # Also of the switch between light and dark, which decides when the page is loaded.
    tried.write_text(text.replace('data-md-color-scheme="default"', f'data-md-color-scheme="{scheme}"'))
    found = look(tried, width_px, LOOK, shown.parent)
    assert found["scheme"] == scheme
    assert found["wide"] <= 0
    assert found["search"]
    assert not found["broken"]
    assert not found["raw"], "a block of code that mkdocs takes for text"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        tags = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"', page.read_text())
        assert not [address for address in tags if "canonical" not in address], page


def test_search_has_an_index_that_a_file_can_read(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text().startswith("var __index")
