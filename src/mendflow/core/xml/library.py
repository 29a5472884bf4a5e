"""lxml, loaded when XML is first read or written: most cases have none, and the library takes long to load.

`ParsedElement` is an element of a document, as everybody here calls it. At run time it is any object, so that an
annotation does not load the library."""

from typing import TYPE_CHECKING

from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from lxml import etree

    ParsedElement = etree._Element
else:
    etree = LazyModule("lxml.etree")
    ParsedElement = object

__all__ = ["ParsedElement", "etree"]
