"""XML comes in through one door, and whatever lies about its size, its depth or its friends stays outside."""

from mendflow.core.xml.door import BadXml, Bounds, Node, parse

__all__ = ["BadXml", "Bounds", "Node", "parse"]
