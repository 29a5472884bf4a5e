"""Plain data as YAML that our reader gives back unchanged, or None if YAML cannot express it."""

import json
import re
from typing import Any, Final

import yaml

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.text_data import number_text
from mendflow.core.model.values import Value
from mendflow.formats.yaml.document import FRACTION, WHOLE, WORDS, parse, plain_data

WIDTH: Final = 110
PAGE: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?\n)+")
"""Lines that can stand as they are."""


class Dumper(yaml.SafeDumper):
    """Block style, no aliases, and quotes wherever our reader would see something else than text."""

    # A time is a text to our reader, and needs no quotes.
    yaml_implicit_resolvers = {
        first: [(tag, found) for tag, found in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None
    if text in WORDS or WHOLE.fullmatch(text) or FRACTION.fullmatch(text) or text == "<<":
        style = '"'
    elif "\n" in text or not text.isprintable():
        style = "|" if PAGE.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_null(dumper: yaml.SafeDumper, _: None) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:null", "")


def _represent_number(dumper: yaml.SafeDumper, number: float) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:float", number_text(number))


Dumper.add_representer(str, _represent_text)
Dumper.add_representer(float, _represent_number)
Dumper.add_representer(type(None), _represent_null)


def dump(data: Value) -> str:
    return str(
        yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=False)
    )


def dump_if_faithful(data: Value) -> str | None:
    """The YAML of the data, if reading it gives the same data."""
    try:
        text = dump(data)
        node, problems = parse(text, "")
    except (BadFlow, yaml.YAMLError, UnicodeError):
        return None
    return text if not problems and type_exact(plain_data(node)) == type_exact(data) else None


def type_exact(data: Value) -> str:
    """What data is, strictly: true is not 1, and 1 is not 1.0."""
    return json.dumps(data, sort_keys=True)
