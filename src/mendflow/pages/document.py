"""The frame of every page: one self-contained file.

Its content security policy names each style and script by its hash, so no request leaves the page and no text in it
becomes code."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources as package_files
from pathlib import Path

from mendflow.pages.formatting import escape_html, one_line

STYLE = package_files.files("mendflow.pages").joinpath("report.css").read_text(encoding="utf-8")
TITLE_CHARS_MAX = 120
_BEGINNING = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-"
)
"""How every page begins, by which it is known to be one."""


def document(title: str, body: str, *, more_styles: Sequence[str] = (), script: str = "") -> str:
    """The whole page. `more_styles` are in the body, inside drawings, and are allowed here."""
    ran = f"<script>{script}</script>" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy((STYLE, *more_styles), script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">'
        f"<title>{escape_html(one_line(title, TITLE_CHARS_MAX))}</title><style>{STYLE}</style></head>"
        f"<body>{body}{ran}</body></html>\n"
    )


def is_page(path: Path) -> bool:
    """Whether a file is such a page."""
    beginning = _BEGINNING.encode()
    with path.open("rb") as file:
        return file.read(len(beginning)) == beginning


def figure(value: str, word: str, css: str = "") -> str:
    """A headline number, with its label."""
    return f'<div class="figure {css}"><b>{escape_html(value)}</b><span>{word}</span></div>'


def _policy(styles: Sequence[str], script: str) -> str:
    scripts = f"script-src {_hash(script)}; " if script else ""
    return (
        f"default-src 'none'; style-src {' '.join(map(_hash, styles))}; {scripts}"
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
