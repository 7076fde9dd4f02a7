"""Hooks of mkdocs: links to files that are no pages become paths, and search works without the internet.

On the site there is nothing to go to; where the repository is read, the links work.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parent.parent
SHIM, OWN_SHIM = "https://unpkg.com/iframe-worker/shim", "assets/iframe-worker.js"
"""What a page that is opened as a file needs for its search: the theme's address of it, and our copy."""
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


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Return the page's HTML with our copy of the search's shim; called by mkdocs for each page."""
    return output.replace(SHIM, get_relative_url(OWN_SHIM, page.url))


def on_post_template(output: str, template_name: str, **_: Any) -> str:
    """Do the same for pages that are no documents, such as the one for an address that does not exist."""
    return output.replace(SHIM, "/" + OWN_SHIM)
