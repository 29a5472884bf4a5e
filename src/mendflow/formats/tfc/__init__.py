"""Trivial file catalogues: rules that map logical names to places, in CMS's XML and in YAML, and storage elements with
them."""

from mendflow.formats.tfc.cms import read_cms, write_cms
from mendflow.formats.tfc.native import load_element, load_name_rules, read_element, read_name_rules, write_name_rules

__all__ = [
    "load_element",
    "load_name_rules",
    "read_cms",
    "read_element",
    "read_name_rules",
    "write_cms",
    "write_name_rules",
]
