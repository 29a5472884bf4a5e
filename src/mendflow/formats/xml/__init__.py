"""XML comes in through one door, and whatever lies about its size, its depth or its friends stays outside."""

from mendflow.formats.xml.door import Bounds, parse

__all__ = ["Bounds", "parse"]
