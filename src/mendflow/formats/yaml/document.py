"""Parses YAML as a tree of nodes with positions, without trusting the text.

The parser's events are processed one by one and everything that could grow without bound is counted: size, depth, the
number of values, and the expansion of aliases. Only plain data is constructed, and nothing recurses. Plain words follow
YAML 1.2: `on`, `no` and `12:30` are texts. A number is one only if nothing of what is written is lost by that: `1.10`
and `007` are texts, and numbers only for a key that takes a number."""

from collections.abc import Iterator
from typing import Any, Final, Union

import msgspec
import yaml

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.text_data import number_or_text
from mendflow.core.model.values import Value
from mendflow.formats.files import TEXT_BYTES_MAX, too_large_error
from mendflow.lazy import lazy_pattern

DEPTH_MAX: Final = 100
NODES_MAX: Final = 200_000
EXPANDED_MAX: Final = 300_000

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PLAIN_TAGS: Final = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map")}
WHOLE: Final = lazy_pattern(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
FRACTION: Final = lazy_pattern(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
WORDS: Final[dict[str, Value]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class SourceSpan(msgspec.Struct, frozen=True):
    """`start` and `end` are offsets into the text; line and column count from 1."""

    line: int
    column: int
    start: int
    end: int


class ScalarNode(msgspec.Struct, frozen=True):
    """`written` is the original text. What is `plain` has no quotes, and could be a number where one is expected."""

    place: SourceSpan
    value: Value
    written: str = ""
    plain: bool = False


class ListNode(msgspec.Struct, frozen=True):
    place: SourceSpan
    parts: list["YamlNode"]


class MapEntry(msgspec.Struct, frozen=True):
    key: ScalarNode
    value: "YamlNode"


class MapNode(msgspec.Struct, frozen=True):
    """A map. Keys are texts, whatever YAML would make of them."""

    place: SourceSpan
    entries: dict[str, MapEntry]


YamlNode = Union[ScalarNode, ListNode, MapNode]


def describe(node: YamlNode) -> str:
    """What a node is, for error messages."""
    match node:
        case ListNode():
            return "a list"
        case MapNode():
            return "a map"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=bool() as value):
            return str(value).lower()
        case ScalarNode(value=str() as value):
            return f"the text `{value if len(value) <= 40 else value[:37] + '...'}`"
    return f"the number {node.value}"


def plain_data(node: YamlNode) -> Value:
    """The data of a node. Depth and size were bounded when it was read."""
    match node:
        case ScalarNode():
            return node.value
        case ListNode():
            return [plain_data(part) for part in node.parts]
        case MapNode():
            return {name: plain_data(entry.value) for name, entry in node.entries.items()}


def number_in(node: YamlNode | None) -> int | float | None:
    """The number that stands where a number is expected: also `1.50`, `1e3` or `007`, which in data are texts."""
    if not isinstance(node, ScalarNode) or isinstance(node.value, bool):
        return None
    if isinstance(node.value, (int, float)):
        return node.value
    text = node.written if node.plain else ""
    if WHOLE.fullmatch(text):
        return int(text, 0) if text.startswith(("0x", "0o")) else int(text)
    return float(text) if FRACTION.fullmatch(text) and not text.lstrip("+-").isdigit() else None


def spelling_flaw(node: ScalarNode) -> str:
    """What is wrong with `True` or `NULL` in data, which a command would get in other letters; else nothing."""
    if not node.plain or not (node.value is None or isinstance(node.value, bool)):
        return ""
    meant = {None: "null", True: "true", False: "false"}[node.value]
    if node.written in (meant, "", "~"):
        return ""
    return f'`{node.written}` is not `{meant}` in a command; write `{meant}`, or "{node.written}" for the text'


def setting_data(node: YamlNode) -> Value:
    """The data of a node where types are known, and a number is meant wherever one can be read."""
    number = number_in(node)
    return plain_data(node) if number is None else number


def parse(text: str, file: str, holds: str = "a flow has `jobs:` or `steps:`") -> tuple[YamlNode, list[Problem]]:
    """The tree of the one document in the text, and what is wrong with single entries. Raises BadFlow for a text that
    has no tree. `holds` is what an empty file should hold."""
    if len(text) > TEXT_BYTES_MAX:
        raise too_large_error(len(text), file)
    builder = NodeBuilder(file)
    try:
        for event in events(text):
            builder.take(event)
    except yaml.reader.ReaderError as error:
        raise builder.refuse(place_at(text, error.position), "this character cannot stand in a flow file") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise builder.refuse(place_of(mark, mark) if mark else None, yaml_error_text(text, error)) from None
    if builder.root is None:
        raise builder.refuse(None, f"the file is empty; {holds}")
    return builder.root, builder.problems


def events(text: str) -> Iterator[yaml.Event]:
    yield from yaml.parse(text, Loader=LOADER)


def place_at(text: str, offset: int) -> SourceSpan:
    line_start = text.rfind("\n", 0, offset) + 1
    return SourceSpan(text.count("\n", 0, offset) + 1, offset - line_start + 1, offset, offset)


def place_of(start: Any, end: Any) -> SourceSpan:
    return SourceSpan(start.line + 1, start.column + 1, start.index, end.index)


def yaml_error_text(text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return "a tab stands where YAML wants spaces; indent with spaces"
    if (
        mark is not None
        and text[mark.index : mark.index + 1] in ("@", "`", "%")
        and "cannot start" in str(error.problem)
    ):
        return f"a text that starts with `{text[mark.index]}` must be in quotes"
    if error.problem == "mapping values are not allowed in this context":
        return "a second `:` in one line; put a text that contains `: ` in quotes"
    if "scanning a tag" in str(error.context):
        return 'a text that starts with `!` must be in quotes, such as "!has(jobs.build)"'
    if mark is not None and "flow mapping" in str(error.context) and _bare_expression(text, mark.index):
        return 'inside braces an expression must be in quotes, such as {in.txt: "${{ item }}"}'
    context = f" {error.context}" if error.context else ""
    return f"this is not YAML: {error.problem or 'it cannot be read'}{context}"


def _bare_expression(text: str, place: int) -> bool:
    """Whether an expression that is not in quotes stands at this place, or before it in its line."""
    before = text[text.rfind("\n", 0, place) + 1 : place + 2]
    at = before.rfind("${{")
    return at >= 0 and before[:at].count('"') % 2 == 0 and before[:at].count("'") % 2 == 0


def scalar_node(event: yaml.ScalarEvent, place: SourceSpan) -> ScalarNode:
    """What a scalar means: a quoted one is text; a plain one may be a number, true, false or null."""
    text = event.value
    if event.style in ("'", '"', "|", ">") or (event.tag or "").endswith(":str"):
        return ScalarNode(place, text, text)
    return ScalarNode(place, WORDS[text] if text in WORDS else number_or_text(text), text, plain=True)


class OpenCollection:
    """A list or a map that is still being read, with its size when aliases are expanded."""

    __slots__ = ("anchor", "key", "merges", "node", "size")

    def __init__(self, node: ListNode | MapNode, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.key: ScalarNode | None = None
        self.merges: list[YamlNode] = []
        self.size = 1


class NodeBuilder:
    """Takes the parser's events and makes the tree."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: YamlNode | None = None
        self.problems: list[Problem] = []
        self._open: list[OpenCollection] = []
        self._anchors: dict[str, tuple[YamlNode, int]] = {}
        self._nodes = 0
        self._documents = 0

    def refuse(self, place: SourceSpan | None, message: str) -> BadFlow:
        return BadFlow(problems=[*self.problems, self._problem(place, message)])

    def _problem(self, place: SourceSpan | None, message: str) -> Problem:
        line, column = (place.line, place.column) if place else (0, 0)
        return Problem(file=self.file, line=line, column=column, message=message)

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                place = self._seen(event)
                self._close(scalar_node(event, place), 1, event.anchor)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.SequenceStartEvent():
                self._push(ListNode(self._seen(event), []), event.anchor)
            case yaml.MappingStartEvent():
                self._push(MapNode(self._seen(event), {}), event.anchor)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                done = self._open.pop()
                if isinstance(done.node, MapNode):
                    self._merge(done)
                self._close(done.node, done.size, done.anchor)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    place = place_of(event.start_mark, event.end_mark)
                    raise self.refuse(place, "a second document starts here; a flow file holds one flow")

    def _seen(self, event: yaml.NodeEvent) -> SourceSpan:
        place = place_of(event.start_mark, event.end_mark)
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self.refuse(place, f"the file holds more than {NODES_MAX:,} values; give large data as a file")
        tag = getattr(event, "tag", None)
        if tag not in (None, "!") and tag not in PLAIN_TAGS:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            if "(" in shown or ("." in shown and not shown.startswith("!!")):
                message = f'a text that starts with `!` must be in quotes, such as "{shown}"'
            else:
                message = f"the tag `{shown}` is not taken; a flow file holds plain data only"
            raise self.refuse(place, message)
        return place

    def _push(self, node: ListNode | MapNode, anchor: str | None) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise self.refuse(node.place, f"lists and maps are nested more than {DEPTH_MAX} deep")
        if anchor:
            self._anchors.pop(anchor, None)
        self._open.append(OpenCollection(node, anchor))

    def _alias(self, event: yaml.AliasEvent) -> None:
        place = self._seen(event)
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise self.refuse(place, f"`*{event.anchor}` stands for nothing: no `&{event.anchor}` ended before it")
        self._close(found[0], found[1], None)

    def _close(self, node: YamlNode, size: int, anchor: str | None) -> None:
        """Put a finished node in its place."""
        if anchor:
            self._anchors[anchor] = (node, size)
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.size += size
        if parent.size > EXPANDED_MAX:
            raise self.refuse(node.place, f"with its aliases written out this holds more than {EXPANDED_MAX:,} values")
        if isinstance(parent.node, ListNode):
            parent.node.parts.append(node)
        elif parent.key is None:
            parent.key = self._key(node)
        else:
            self._enter(parent, parent.node, parent.key, node)
            parent.key = None

    def _key(self, node: YamlNode) -> ScalarNode:
        if isinstance(node, ScalarNode):
            return node
        raise self.refuse(node.place, "a key must be a word; put text that starts with `{` or `[` in quotes")

    def _enter(self, parent: OpenCollection, map_node: MapNode, key: ScalarNode, node: YamlNode) -> None:
        name = key.value if isinstance(key.value, str) else key.written
        if name == "<<":
            parent.merges.append(node)
        elif name in map_node.entries:
            first = map_node.entries[name].key.place.line
            self.problems.append(
                self._problem(key.place, f"`{name}` is given twice; it stands in line {first} already")
            )
        else:
            map_node.entries[name] = MapEntry(key, node)

    def _merge(self, done: OpenCollection) -> None:
        """`<<: *base` adds the keys that the map does not have itself."""
        assert isinstance(done.node, MapNode)
        for merged in done.merges:
            for part in merged.parts if isinstance(merged, ListNode) else [merged]:
                if not isinstance(part, MapNode):
                    raise self.refuse(part.place, "`<<` takes a map, or a list of maps")
                for name, entry in part.entries.items():
                    done.node.entries.setdefault(name, entry)
