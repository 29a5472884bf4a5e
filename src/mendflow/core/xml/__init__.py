"""XML: bounded parsing, trees, schemas, style sheets. All input goes through one parser, which refuses documents that
are too large, too deep, or refer to others."""

from mendflow.core.xml.library import ParsedElement
from mendflow.core.xml.parser import BadXml, XmlBounds, parse

__all__ = ["BadXml", "ParsedElement", "XmlBounds", "parse"]
