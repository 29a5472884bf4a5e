"""What the triggers of a flow become: a watch, a data set that starts a case for each file, and for a plain folder a
storage element. Its schedule is made by services/schedules.

All have names that follow from the flow's name or from the folder, so deploying twice makes one of each."""

import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from mendflow.core.data.path_patterns import pattern_flaw
from mendflow.core.data.paths import path_flaw
from mendflow.core.model.data import NameRule, NameRules, StorageElement
from mendflow.core.model.data_sets import DataSetSpec, FolderWatch, Gathering
from mendflow.core.model.flow import FILES, Flow
from mendflow.core.model.flow_triggers import FileArrival
from mendflow.core.model.values import Value
from mendflow.lazy import LazyModule, lazy_pattern

if TYPE_CHECKING:
    from mendflow.core.schedules import trigger_spec
else:
    trigger_spec = LazyModule("mendflow.core.schedules.trigger_spec")

EVERY_MS_MIN: Final = 100
FILE_TYPES: Final = ("file", FILES)
GATHERING: Final = "files"
NAME_CHARS_MAX: Final = 100
SLUG_CHARS_MAX: Final = 40
_PROTOCOL: Final = "folder"
_NOT_IN_NAMES: Final = lazy_pattern(r"[^A-Za-z0-9_-]+")


class TriggerFlaw(NamedTuple):
    """What is wrong with the triggers of a flow, and at which keys below `on`."""

    keys: tuple[str, ...]
    message: str


class FlowWatch(NamedTuple):
    """The watch that a flow has, and the data set that starts its cases."""

    flow: str
    watch: FolderWatch
    data_set: DataSetSpec


def trigger_name(flow: str) -> str:
    """The name of the watch, and of the data set, of a flow."""
    name = f"on-{flow}"
    return name if len(name) <= NAME_CHARS_MAX else f"{name[:80]}-{_short_hash(flow)}"


def flow_watch(flow: str, arrival: FileArrival, *, takes_list: bool, owner: str) -> FlowWatch:
    """`takes_list`: the input gets a list of files, with the one in it."""
    name = trigger_name(flow)
    watch = FolderWatch(
        name=name,
        element=arrival.element or folder_element(arrival.folder).name,
        data_set=name,
        prefix=arrival.prefix,
        match=arrival.match,
        every_ms=arrival.every_ms,
        stable_ms=arrival.stable_ms,
        owner=owner,
    )
    given: Value = ["${{ file }}"] if takes_list else "${{ file }}"
    gathering = Gathering(name=GATHERING, flow=flow, inputs={arrival.input: given}, count=1)
    return FlowWatch(flow, watch, DataSetSpec(name=name, gatherings=(gathering,)))


def folder_element(folder: str) -> StorageElement:
    """A folder of the server's machine as a storage element. Nothing is written through it, so it may lie inside
    another; and its files have names of their own, so files of the same name in other folders are other files."""
    path = folder.rstrip("/")
    slug = _NOT_IN_NAMES.sub("-", path.rpartition("/")[2])[:SLUG_CHARS_MAX].strip("-")
    name = "-".join(part for part in (_PROTOCOL, slug, _short_hash(path)) if part)
    url = f"file://{path}"
    rules = NameRules(
        to_physical=(NameRule(protocol=_PROTOCOL, match=f"/{re.escape(name)}/(.+)", result="$1"),),
        to_logical=(NameRule(protocol=_PROTOCOL, match=f"{re.escape(url)}/(.+)", result=f"/{name}/$1"),),
    )
    return StorageElement(name=name, url=url, rules=rules, protocol=_PROTOCOL, read_only=True)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def trigger_flaws(flow: Flow) -> Iterator[TriggerFlaw]:
    """Everything that is wrong with the triggers of a flow, as far as the flow itself tells."""
    if flow.triggers is None:
        return
    if flow.xml is not None:
        yield TriggerFlaw((), "cases of this flow are started by messages; it cannot have `on`")
    if (files := flow.triggers.files) is not None:
        yield from (TriggerFlaw(("files", *keys), message) for keys, message in _arrival_flaws(flow, files))
    if (schedule := flow.triggers.schedule) is not None:
        flaws = trigger_spec.schedule_trigger_flaws(flow, schedule)
        yield from (TriggerFlaw(("schedule", *keys), message) for keys, message in flaws)
    for notice in flow.triggers.notices:
        if not notice.on or not notice.notify or not all(notice.notify):
            yield TriggerFlaw((), "a notice says after which ends it is sent, and to whom")


def _arrival_flaws(flow: Flow, files: FileArrival) -> Iterator[TriggerFlaw]:
    if bool(files.element) == bool(files.folder) or (files.folder and not files.folder.startswith("/")):
        yield TriggerFlaw(("in",), "say where files arrive: `STORE:PATH`, or a folder of the server's machine")
    if files.prefix and (flaw := path_flaw(files.prefix)):
        yield TriggerFlaw(("in",), f"{files.prefix!r:.200} is no path below a storage element: {flaw}")
    if flaw := pattern_flaw(files.match):
        yield TriggerFlaw(("match",), f"{files.match!r:.200} is no pattern for files: {flaw}")
    if files.every_ms < EVERY_MS_MIN:
        yield TriggerFlaw(("every",), f"a folder is looked at every {EVERY_MS_MIN} ms at most")
    if files.stable_ms < 0:
        yield TriggerFlaw(("stable",), "a file cannot be unchanged for less than no time")
    taking = flow.inputs.get(files.input)
    if taking is None:
        there = ", ".join(flow.inputs) or "none"
        yield TriggerFlaw(("input",), f"the flow has no input `{files.input}` for the file; it has {there}")
        return
    if taking.type and taking.type not in FILE_TYPES:
        message = f"the input `{files.input}` is a {taking.type} and gets a file; declare it with `type: file`"
        yield TriggerFlaw(("input",), message)
    for name, other in flow.inputs.items():
        if other.required and name != files.input:
            yield TriggerFlaw(
                (), f"nobody gives the input `{name}` when a file starts a case; give it a `default:` under `inputs:`"
            )
