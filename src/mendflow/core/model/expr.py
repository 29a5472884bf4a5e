"""An expression, and the language that it is in."""

from typing import Final

import msgspec

CEL: Final = "cel"
XPATH: Final = "xpath"


class Expr(msgspec.Struct, frozen=True, omit_defaults=True):
    """`namespaces` are the prefixes that stand around an XPath expression, each with what it means."""

    text: str
    language: str = CEL
    namespaces: tuple[tuple[str, str], ...] = ()
