"""Elements that are being written, with their final names and prefixes, because texts inside them use those
prefixes."""

from typing import Final, Union

import msgspec

from mendflow.core.xml.writer import escape_text

HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
STEP: Final = "  "


class RawXml(msgspec.Struct, frozen=True):
    """XML that is put in as it is."""

    text: str


class XmlTag(msgspec.Struct):
    """`attributes` without a value are not written."""

    name: str
    attributes: dict[str, str] = {}
    children: list[Union["XmlTag", RawXml]] = []

    def put(self, *children: Union["XmlTag", RawXml, None]) -> "XmlTag":
        self.children.extend(child for child in children if child is not None)
        return self


def new_tag(name: str, attributes: dict[str, str] | None = None, *children: XmlTag | RawXml | None) -> XmlTag:
    given = {key: value for key, value in (attributes or {}).items() if value}
    return XmlTag(name, given, [child for child in children if child is not None])


def document(root: XmlTag) -> str:
    return f"{HEAD}{_render(root, '')}\n"


def text(value: str) -> RawXml:
    return RawXml(escape_text(value))


def _render(at: XmlTag, indent: str) -> str:
    attributes = "".join(f' {name}="{_quoted(value)}"' for name, value in at.attributes.items())
    if not at.children:
        return f"{indent}<{at.name}{attributes}/>"
    if any(isinstance(child, RawXml) for child in at.children):
        inside = "".join(child.text if isinstance(child, RawXml) else _render(child, "") for child in at.children)
        return f"{indent}<{at.name}{attributes}>{inside}</{at.name}>"
    lines = "\n".join(_render_child(child, indent + STEP) for child in at.children)
    return f"{indent}<{at.name}{attributes}>\n{lines}\n{indent}</{at.name}>"


def _render_child(child: XmlTag | RawXml, indent: str) -> str:
    return _render(child, indent) if isinstance(child, XmlTag) else child.text


def _quoted(value: str) -> str:
    return escape_text(value).replace('"', "&quot;").replace("\t", "&#9;").replace("\n", "&#10;")
