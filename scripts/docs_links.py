"""A hook of mkdocs: links to files of the repository that are no pages become their paths.

On the site there is nothing to go to; where the repository is read, the links work.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page's text with such links replaced; called by mkdocs for each page."""
    folder = Path(page.file.abs_src_path).parent

    def replaced(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link[2]))
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        path = str(target.relative_to(ROOT)) if target.is_relative_to(ROOT) else link[2]
        return link[1] if path in link[1] else f"{link[1]} (`{path}`)"

    return LINK.sub(replaced, markdown)
