"""XML comes in through one door, and whatever lies about its size, its depth or its friends stays outside."""

from mendflow.core.xml.parser import BadXml, ParsedElement, XmlBounds, parse

__all__ = ["BadXml", "ParsedElement", "XmlBounds", "parse"]
