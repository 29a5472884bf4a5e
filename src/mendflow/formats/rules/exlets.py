"""The exlets of a rule file: their steps as flows, and flows as steps again.

What was read is remembered as it stood, and written again if it still means the same flow. Else the steps are found
from the flow, and tried: if they do not give that very flow, the flow itself is written, so that nothing is lost."""

import json
import re
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.engine.plan import below
from mendflow.core.model.flow import Empty, Flow, Job, Stage
from mendflow.core.model.ids import FlowName
from mendflow.core.model.mending import CASE_LEVEL, ExceptionType
from mendflow.core.model.problems import BadFlow
from mendflow.core.model.rules import HOUSE
from mendflow.core.model.values import Value
from mendflow.formats.rules import tables
from mendflow.formats.rules.dump import dumped
from mendflow.formats.rules.steps import steps_of
from mendflow.formats.yaml.calls import FlowFiles
from mendflow.formats.yaml.document import Entries, Node, describe, parse, plain
from mendflow.formats.yaml.exlets import build_exlet
from mendflow.formats.yaml.reading import Reading

REMEMBERED: Final = "exlets"
"""Under this key a rule set keeps the steps of its exlets as they were written."""


class Exlets:
    """The exlets of one reading, by name."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.flows: dict[str, Flow] = {}
        self._steps: dict[str, Value] = {}
        self._files = FlowFiles(reading.folder)

    def named(self, node: Node | None) -> None:
        if node is None:
            return
        if not isinstance(node, Entries):
            self.reading.problem(node, f"`exlets` is a map of exlets by name, not {describe(node)}")
            return
        for name, entry in node.entries.items():
            self._put(name, entry.value)

    def inline(self, type: ExceptionType, task: str, id: int, node: Node) -> str:
        """Steps that stand in a rule: an exlet with a made-up name."""
        name = inline_name(type, task, id)
        while name in self.flows:
            name += "-again"
        self._put(name, node)
        return name

    def worklet(self, node: Node, file: str) -> str:
        """The name of a flow that is in a file beside this one; it comes along with the rules."""
        flow = self._files.find(self.reading, node, file)
        if flow is None:
            return ""
        if self.flows.get(flow.name, flow) != flow:
            self.reading.problem(node, f"`{flow.name}`, of `{file}`, is the name of another exlet or flow; rename one")
        self.flows[flow.name] = flow
        return str(flow.name)

    def _put(self, name: str, node: Node) -> None:
        if isinstance(node, Entries) and set(node.entries) == {tables.EXLET_MODEL}:
            flow = self._model(node.entries[tables.EXLET_MODEL].value)
        else:
            flow = build_exlet(self.reading, node, name, self._files)
            if flow is not None:
                flow = flow if needs_folder(flow) else placeless(flow)
                if steps_of(flow) != plain(node):
                    self._steps[name] = plain(node)
        # Where something is wrong with the steps, the rules that conclude them need not be told so again.
        self.flows[name] = flow if flow is not None else Flow(name=FlowName(name), body=Empty(name="empty"))

    def _model(self, node: Node) -> Flow | None:
        try:
            value = plain(node)
            return msgspec.json.decode(value, type=Flow) if isinstance(value, str) else msgspec.convert(value, Flow)
        except msgspec.MsgspecError as error:
            self.reading.problem(node, f"this is no flow: {error}")
            return None

    def remembered(self, kept: dict[str, Value]) -> dict[str, Value]:
        return {**kept, REMEMBERED: self._steps} if self._steps else kept


def inline_name(type: ExceptionType, task: str, id: int) -> str:
    """What an exlet is called that stands in its rule. A dot keeps it apart from given names."""
    middle = "" if type in CASE_LEVEL or task == HOUSE else f".{re.sub(r'[^A-Za-z0-9_]+', '-', task)}"
    return f"{type}{middle}.{id}"


def written(name: str, flow: Flow, remembered: Value, folder: Path) -> Value:
    """The node that gives this flow when it is read again."""
    for steps in (remembered, steps_of(flow)):
        if steps is not None and same_flow(read_again(name, steps, folder), flow):
            return steps
    return {tables.EXLET_MODEL: json.dumps(msgspec.to_builtins(flow), ensure_ascii=False)}


def read_again(name: str, steps: Value, folder: Path) -> Flow | None:
    """What reading would make of these steps."""
    text = dumped(steps)
    if text is None:
        return None
    try:
        node, problems = parse(text, "")
        reading = Reading("", text, folder)
        flow = build_exlet(reading, node, name, FlowFiles(folder))
    except BadFlow:
        return None
    return None if problems or reading.problems else flow


def same_flow(first: Flow | None, second: Flow) -> bool:
    """Whether two flows are one, wherever their files are."""
    return first is not None and placeless(first) == placeless(second)


def needs_folder(flow: Flow) -> bool:
    """Whether it takes files from where it was written."""
    return any(isinstance(activity, Job | Stage) for activity in below(flow))


def placeless(flow: Flow) -> Flow:
    return msgspec.structs.replace(flow, folder="")
