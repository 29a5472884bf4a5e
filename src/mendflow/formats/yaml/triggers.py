"""Reads the key `on` of a flow: what starts its cases, and who is told of their ends, where the flow is deployed."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mendflow.core.data.flow_triggers import FILE_TYPES, trigger_flaws
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import Problem
from mendflow.core.model.flow import UNSENT_FOLDER, Flow, Input
from mendflow.core.model.flow_triggers import WATCH_MS, EndKind, EndNotice, FileArrival, FlowTriggers
from mendflow.formats.hints import with_hint
from mendflow.formats.spelling import suggestion_for
from mendflow.formats.yaml import trigger_keys
from mendflow.formats.yaml.document import (
    ListNode,
    MapEntry,
    MapNode,
    ScalarNode,
    SourceSpan,
    YamlNode,
    describe,
    parse,
)
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.flow_hints import ON_HINTS
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.schedule_triggers import schedule_of
from mendflow.lazy import lazy_pattern

ENDS: Final[Mapping[str, tuple[EndKind, ...]]] = {
    "failure": ("failed",),
    "success": ("completed",),
    "finished": ("completed", "failed", "cancelled"),
}
STORE: Final = lazy_pattern(r"([A-Za-z0-9_][\w.-]*):(.*)", re.ASCII)
ADDRESS: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")
WEBHOOK: Final = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def triggers_of(reader: YamlReader, node: YamlNode | None, flow: Flow) -> FlowTriggers | None:
    """The triggers that a node describes, for a flow that has none yet; None if there are none."""
    if node is None:
        return None
    if not isinstance(node, MapNode) or not node.entries:
        given = "nothing" if isinstance(node, MapNode) else describe(node)
        reader.problem(node, f"`on` is a map with {_listed(trigger_keys.ON)}, not {given}")
        return None
    fields = Fields(reader, node, trigger_keys.ON)
    before = len(reader.problems)
    for name, entry in node.entries.items():
        if name not in trigger_keys.ON:
            _refuse_key(reader, name, entry)
    files = _arrival(reader, fields, flow.inputs)
    notices = [notice for name, ends in ENDS.items() if (notice := _notice(reader, fields, name, ends)) is not None]
    schedule = schedule_of(reader, fields.node_of("schedule"), flow.inputs)
    found = FlowTriggers(files=files, notices=tuple(notices), schedule=schedule)
    told = _told_already(files) | ({()} if len(reader.problems) > before else set())
    for keys, message in trigger_flaws(msgspec.structs.replace(flow, triggers=found)):
        if keys not in told:
            reader.problem(_deepest(node, keys), message)
    return found


def _told_already(files: FileArrival | None) -> set[tuple[str, ...]]:
    """The keys of what is missing because it could not be read."""
    if files is None:
        return set()
    given = {"in": files.where, "input": files.input}
    return {("files", name) for name, value in given.items() if not value}


def _listed(names: Mapping[str, Any]) -> str:
    first, *rest = [f"`{name}:`" for name in names]
    return f"{first}, {', '.join(rest[:-1])} or {rest[-1]}"


def _refuse_key(reader: YamlReader, name: str, entry: MapEntry) -> None:
    message = f"`on` has no key `{name}`"
    if name in ON_HINTS:
        reader.problem(entry.key, with_hint(message, name, ON_HINTS))
    else:
        reader.problem(entry.key, message, suggestion_for(name, trigger_keys.ON))


def _arrival(reader: YamlReader, fields: Fields, inputs: Mapping[str, Input]) -> FileArrival | None:
    node = fields.node_of("files")
    if node is None:
        return None
    given = fields_of(reader, node, trigger_keys.ON_FILES, "`on.files`")
    if given is None:
        return None
    place = _place(reader, given)
    return FileArrival(
        input=_taking_input(reader, given, inputs),
        element=place.get("element", ""),
        prefix=place.get("prefix", ""),
        folder=place.get("folder", ""),
        match=given.get("match", "*"),
        every_ms=given.get("every", WATCH_MS),
        stable_ms=given.get("stable", WATCH_MS),
    )


def _place(reader: YamlReader, given: Fields) -> dict[str, str]:
    """The storage element and the path below it, or the folder."""
    text, node = given.get("in", ""), given.node_of("in")
    if not text or node is None:
        return {}
    if text.startswith(LOGICAL_PREFIX):
        reader.problem(node, f"`{text}` is a logical name; say in which store files arrive, as `STORE:PATH`")
        return {}
    if ADDRESS.match(text):
        named = "mendflow data storage add --name drop --url URL"
        reader.problem(node, f"an address is a storage element: add it by `{named}`, and write `in: drop:PATH` here")
        return {}
    if found := STORE.fullmatch(text):
        return {"element": found.group(1), "prefix": found.group(2).strip("/")}
    if reader.is_alone:
        return {"folder": text if text.startswith("/") else f"/{UNSENT_FOLDER}/{text}"}
    return {"folder": os.path.normpath(os.path.join(os.path.abspath(reader.folder), os.path.expanduser(text)))}


def _taking_input(reader: YamlReader, given: Fields, inputs: Mapping[str, Input]) -> str:
    """The name of the input that gets the file."""
    if "input" in given:
        return str(given.get("input", ""))
    fit = [name for name, each in inputs.items() if each.type in FILE_TYPES]
    if len(fit) == 1:
        return fit[0]
    if fit:
        reader.problem(given.node, f"several inputs could get the file: {', '.join(fit)}; say which with `input:`")
    else:
        reader.problem(given.node, "no input of the flow takes the file; declare one: `inputs: {file: {type: file}}`")
    return ""


def _notice(reader: YamlReader, fields: Fields, name: str, ends: tuple[EndKind, ...]) -> EndNotice | None:
    node = fields.node_of(name)
    if node is None:
        return None
    given = fields_of(reader, node, trigger_keys.ON_END, f"`on.{name}`")
    receivers: Sequence[str | None] = (given.get("notify") or []) if given is not None else []
    value = given.node_of("notify") if given is not None else None
    parts = value.parts if isinstance(value, ListNode) else [value] * len(receivers)
    for receiver, part in zip(receivers, parts, strict=True):
        if receiver is not None and part is not None and (flaw := _receiver_flaw(receiver)):
            reader.problem(part, flaw)
    if given is not None and isinstance(value, ListNode) and not receivers:
        reader.problem(value, "nobody is told: name at least one address or webhook")
    return EndNotice(on=ends, notify=tuple(each for each in receivers if each))


def _receiver_flaw(receiver: str) -> str:
    if receiver.startswith(("http://", "https://")) or WEBHOOK.fullmatch(receiver):
        return ""
    if "@" in receiver and " " not in receiver and "://" not in receiver:
        return ""
    return (
        f"`{receiver:.80}` is no http(s) or mail address and not the name of a webhook; a command that runs after a "
        "failure is `on-failure: COMMAND` at a job"
    )


def _deepest(node: MapNode, keys: Sequence[str]) -> YamlNode:
    """The node at these keys, as far as they are there."""
    found: YamlNode = node
    for key in keys:
        if not isinstance(found, MapNode) or key not in found.entries:
            break
        found = found.entries[key].value
    return found


def problem_at(text: str, file: str, keys: Sequence[str], message: str) -> Problem:
    """A problem that was found elsewhere, at these keys of a flow file."""
    root, _ = parse(text, file)
    place = _deepest(root, keys).place if isinstance(root, MapNode) else root.place
    return Problem(file=file, line=place.line, column=place.column, message=message)


def node_of_data(data: object, place: SourceSpan) -> YamlNode:
    """Data of a Python flow as the node that a file would have had for it."""
    if isinstance(data, Mapping):
        entries = {
            str(name): MapEntry(ScalarNode(place, str(name), str(name)), node_of_data(value, place))
            for name, value in data.items()
        }
        return MapNode(place, entries)
    if isinstance(data, list | tuple):
        return ListNode(place, [node_of_data(part, place) for part in data])
    return ScalarNode(place, data, "" if data is None else str(data))
