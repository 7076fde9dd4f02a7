"""docs/tenants.md: its commands make certificates of one authority for switch and controller."""

from pathlib import Path

from tests.walks.pages import ROOT, follow


def test_certificates_are_made_as_the_page_says(tmp_path: Path) -> None:
    follow(ROOT / "docs" / "tenants.md", tmp_path)
