"""A hook of mkdocs: pages link to files of the repository that are not pages, such as examples. In a checkout such a
link opens the file. The site does not have the file, so there the link becomes its path in the repository."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page, before it is made into HTML. Code blocks stay as they are."""
    folder = posixpath.dirname(page.file.src_uri)
    parts: list[str] = []
    end = 0
    for code in FENCED.finditer(markdown):
        parts += [_inside(markdown[end : code.start()], folder), code[0]]
        end = code.end()
    return "".join([*parts, _inside(markdown[end:], folder)])


def _inside(text: str, folder: str) -> str:
    return LINK.sub(lambda link: _link(link, folder), text)


def _link(link: re.Match[str], folder: str) -> str:
    words, target = link.groups()
    path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
    if "://" in target or target.startswith(("#", "mailto:")) or path == "docs" or path.startswith("docs/"):
        return link[0]
    return f"`{path}`" if words.strip("`") == path else f"{words} (`{path}`)"
