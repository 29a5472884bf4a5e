"""What libxml2 gets when a document refers to another: one of the given texts, or nothing.

The class stands on one of the library's, so the module is loaded with the first such document."""

from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

NOTHING: Final = b"<nothing/>"


class GivenTexts(etree.Resolver):
    """What it gives to libxml2 is of a class that lxml does not show."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        super().__init__()
        self._texts = texts

    def resolve(self, system_url: str | None, public_id: str | None, context: object) -> Any:
        return self.resolve_string(self._texts.get(system_url or "", NOTHING), context, base_url=system_url)
