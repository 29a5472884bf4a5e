"""Passwords that were hidden where a flow file was shown. Who edits what was shown has a word in their place, which is
no password."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.data.url_passwords import HIDDEN, hidden_places
from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode, place_at
from mendflow.formats.yaml.reader import YamlReader

TOLD: Final = (
    f"the password of this URL was hidden where the file was shown, and `{HIDDEN}` stands in its place: write the"
    " password again, or better have the job get it as a secret: `secrets: [NAME]`, see docs/do/secrets.md"
)


def refuse_hidden_passwords(reader: YamlReader, root: YamlNode) -> None:
    """A problem in each line that has such a word in one of its values. In comments it does no harm."""
    if f":{HIDDEN}@" not in reader.text:
        return
    lines = set[int]()
    for node in _texts(root):
        written = reader.text[node.place.start : node.place.end]
        places = [place_at(reader.text, node.place.start + offset) for offset in hidden_places(written)]
        for place in places or [node.place]:
            if place.line not in lines:
                lines.add(place.line)
                reader.problem(place, TOLD)


def _texts(root: YamlNode) -> Iterator[ScalarNode]:
    """The keys and values with such a word."""
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:  # it has several places by an alias
            continue
        seen.add(id(node))
        match node:
            case ScalarNode(value=str() as value):
                if next(hidden_places(value), None) is not None:
                    yield node
            case ListNode(parts=parts):
                pending += parts
            case MapNode(entries=entries):
                pending += [part for entry in entries.values() for part in (entry.key, entry.value)]
