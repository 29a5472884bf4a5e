"""A hook of mkdocs that makes our pages its own.

- Pages link to files of the repository that are not pages, such as examples. In a checkout such a link opens the file.
  The site does not have the file, so there the link becomes its path in the repository.
- The first line of a code block says more than its language: whether a test runs it, and which file it becomes. mkdocs
  would take such a block for text, so it is given the language, and the name of the file as a title."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\s*# file: (\S+)\n")
IN_FENCE = re.compile(r"\bfile=(\S+)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page, before it is made into HTML."""
    folder = posixpath.dirname(page.file.src_uri)
    parts: list[str] = []
    end = 0
    for code in FENCED.finditer(markdown):
        parts += [_text(markdown[end : code.start()], folder), _code(code)]
        end = code.end()
    return "".join([*parts, _text(markdown[end:], folder)])


def _code(block: re.Match[str]) -> str:
    indent, language, info, body = block.groups()
    named = NAMED.match(body)
    if named:
        body = body[named.end() :]
    name = named or IN_FENCE.search(info)
    title = f' title="{name[1]}"' if name else ""
    return f"{indent}```{language}{title}\n{body}{indent}```"


def _text(text: str, folder: str) -> str:
    return LINK.sub(lambda link: _link(link, folder), text)


def _link(link: re.Match[str], folder: str) -> str:
    words, target = link.groups()
    path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
    if "://" in target or target.startswith(("#", "mailto:")) or path == "docs" or path.startswith("docs/"):
        return link[0]
    return f"`{path}`" if words.strip("`") == path else f"{words} (`{path}`)"
