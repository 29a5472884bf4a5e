"""Elements on their way into a text: with names and prefixes as they will be written, since texts inside them speak of
those prefixes."""

from typing import Final, Union

import msgspec

from mendflow.core.xml.writing import escaped

HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
STEP: Final = "  "


class Raw(msgspec.Struct, frozen=True):
    """XML that is put in as it is."""

    text: str


class Tag(msgspec.Struct):
    """`attributes` without a value are not written."""

    name: str
    attributes: dict[str, str] = {}
    children: list[Union["Tag", Raw]] = []

    def put(self, *children: Union["Tag", Raw, None]) -> "Tag":
        self.children.extend(child for child in children if child is not None)
        return self


def tag(name: str, attributes: dict[str, str] | None = None, *children: Tag | Raw | None) -> Tag:
    given = {key: value for key, value in (attributes or {}).items() if value}
    return Tag(name, given, [child for child in children if child is not None])


def document(root: Tag) -> str:
    return f"{HEAD}{_written(root, '')}\n"


def text(value: str) -> Raw:
    return Raw(escaped(value))


def _written(at: Tag, indent: str) -> str:
    attributes = "".join(f' {name}="{_quoted(value)}"' for name, value in at.attributes.items())
    if not at.children:
        return f"{indent}<{at.name}{attributes}/>"
    if any(isinstance(child, Raw) for child in at.children):
        inside = "".join(child.text if isinstance(child, Raw) else _written(child, "") for child in at.children)
        return f"{indent}<{at.name}{attributes}>{inside}</{at.name}>"
    lines = "\n".join(_laid_out(child, indent + STEP) for child in at.children)
    return f"{indent}<{at.name}{attributes}>\n{lines}\n{indent}</{at.name}>"


def _laid_out(child: Tag | Raw, indent: str) -> str:
    return _written(child, indent) if isinstance(child, Tag) else child.text


def _quoted(value: str) -> str:
    return escaped(value).replace('"', "&quot;").replace("\t", "&#9;").replace("\n", "&#10;")
