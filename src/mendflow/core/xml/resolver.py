"""Resolves references between documents to given texts; any other reference fails.

libxml2 asks this resolver before it opens anything, and always gets an answer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mendflow.core.xml.library import ParsedElement, etree
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.core.xml import given_texts
else:
    given_texts = LazyModule("mendflow.core.xml.given_texts")


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
    parser.resolvers.add(given_texts.GivenTexts(texts))
    return etree.fromstring(texts[name], parser, base_url=name)
