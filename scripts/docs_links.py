"""Hooks of mkdocs: links to files that are not pages become paths, and search works offline.

The site has no page for such files; in the repository the links work.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parent.parent
SHIM, OWN_SHIM = "https://unpkg.com/iframe-worker/shim", "assets/iframe-worker.js"
"""Address of the script that search needs in a page opened as a file: the theme's, and our copy's."""
LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page's text with links to files outside docs/ as paths; mkdocs calls this for each page."""
    folder = Path(page.file.abs_src_path).parent

    def replaced(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link[2]))
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        path = str(target.relative_to(ROOT)) if target.is_relative_to(ROOT) else link[2]
        return link[1] if path in link[1] else f"{link[1]} (`{path}`)"

    return LINK.sub(replaced, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Return the page's HTML with our copy of the search's script; mkdocs calls this for each page."""
    return output.replace(SHIM, get_relative_url(OWN_SHIM, page.url))


def on_post_template(output: str, template_name: str, **_: Any) -> str:
    """Replace the script in pages that are not documents, such as the page for an unknown address."""
    return output.replace(SHIM, "/" + OWN_SHIM)
