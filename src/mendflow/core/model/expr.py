"""An expression, and its language."""

from typing import Final

import msgspec

CEL: Final = "cel"
XPATH: Final = "xpath"


class Expr(msgspec.Struct, frozen=True, omit_defaults=True):
    """`namespaces` are the prefixes around an XPath expression, and their meaning."""

    text: str
    language: str = CEL
    namespaces: tuple[tuple[str, str], ...] = ()
