"""Documents: each link leads somewhere, and each page is found from the site's navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_to_some(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    targets = {target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)}
    assert not sorted(target for target in targets if not (page.parent / target).exists())


def test_every_page_outside_the_notebook_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert not sorted(
        page for page in pages if not page.startswith("lab/") and f": {page}\n" not in navigation
    )


def test_the_claims_are_figures_of_the_table_that_their_command_makes() -> None:
    ratio = re.compile(r"\d\.\d+ \(\d\.\d+ to \d\.\d+\)")
    claims, rows = ((ROOT / "docs" / name).read_text() for name in ("findings.md", "results.md"))
    assert set(ratio.findall(claims)) <= set(ratio.findall(rows))
    assert len(ratio.findall(claims)) >= 10
