"""Resolves references between documents to given texts; any other reference fails.

libxml2 asks this resolver before it opens anything, and always gets an answer."""

from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from mendflow.core.xml.parser import ParsedElement

NOTHING: Final = b"<nothing/>"


def resolve_path(base: str, place: str) -> str:
    """A path as seen from the document `base`, without detours."""
    folder = base.replace("\\", "/").rpartition("/")[0]
    parts: list[str] = []
    for part in f"{folder}/{place}".replace("\\", "/").split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def parse_with_resolver(texts: Mapping[str, bytes], name: str) -> ParsedElement:
    """The root of a text that may draw in the others by their names, and nothing else."""
    parser = etree.XMLParser(no_network=True, resolve_entities=False, load_dtd=False, dtd_validation=False)
    parser.resolvers.add(_Texts(texts))
    return etree.fromstring(texts[name], parser, base_url=name)


class _Texts(etree.Resolver):
    """What it gives to libxml2 is of a class that lxml does not show."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        super().__init__()
        self._texts = texts

    def resolve(self, system_url: str | None, public_id: str | None, context: object) -> Any:
        return self.resolve_string(self._texts.get(system_url or "", NOTHING), context, base_url=system_url)
