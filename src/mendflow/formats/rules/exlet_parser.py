"""The exlets of a rule file: steps as flows, and flows as steps again.

The original text is remembered, and written again if it still means the same flow. Otherwise the steps are derived from
the flow, and read back: if they do not give the same flow, the flow itself is written, so that nothing is lost."""

import json
import re
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Empty, Flow, JobActivity, Stage
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import ALL_TASKS
from mendflow.core.model.values import Value
from mendflow.formats.rules import rule_keys
from mendflow.formats.rules.dump import dump_if_faithful
from mendflow.formats.rules.exlet_steps import steps_of
from mendflow.formats.yaml.called_flows import FlowFileLoader
from mendflow.formats.yaml.document import MapNode, YamlNode, describe, parse, plain_data
from mendflow.formats.yaml.exlets import build_exlet
from mendflow.formats.yaml.reader import YamlReader

EXLETS_KEY: Final = "exlets"
"""Under this key a rule set keeps the original steps of its exlets."""


class ExletParser:
    """The exlets of one reading, by name."""

    def __init__(self, reader: YamlReader) -> None:
        self.reader = reader
        self.flows: dict[str, Flow] = {}
        self._steps: dict[str, Value] = {}
        self._files = FlowFileLoader(reader.folder)

    def named(self, node: YamlNode | None) -> None:
        if node is None:
            return
        if not isinstance(node, MapNode):
            self.reader.problem(node, f"`exlets` is a map of exlets by name, not {describe(node)}")
            return
        for name, entry in node.entries.items():
            self._put(name, entry.value)

    def inline(self, type: ExceptionType, task: str, id: int, node: YamlNode) -> str:
        """The steps in a rule: an exlet with a generated name."""
        name = inline_name(type, task, id)
        while name in self.flows:
            name += "-again"
        self._put(name, node)
        return name

    def worklet(self, node: YamlNode, file: str) -> str:
        """The name of a flow in a file beside this one; it is included with the rules."""
        flow = self._files.find(self.reader, node, file)
        if flow is None:
            return ""
        if self.flows.get(flow.name, flow) != flow:
            self.reader.problem(node, f"`{flow.name}`, of `{file}`, is the name of another exlet or flow; rename one")
        self.flows[flow.name] = flow
        return str(flow.name)

    def _put(self, name: str, node: YamlNode) -> None:
        if isinstance(node, MapNode) and set(node.entries) == {rule_keys.EXLET_MODEL}:
            flow = self._model(node.entries[rule_keys.EXLET_MODEL].value)
        else:
            flow = build_exlet(self.reader, node, name, self._files)
            if flow is not None:
                flow = flow if needs_folder(flow) else without_folder(flow)
                if steps_of(flow) != plain_data(node):
                    self._steps[name] = plain_data(node)
        # If the steps have problems, the rules that conclude them need not report them again.
        self.flows[name] = flow if flow is not None else Flow(name=FlowName(name), body=Empty(name="empty"))

    def _model(self, node: YamlNode) -> Flow | None:
        try:
            value = plain_data(node)
            return msgspec.json.decode(value, type=Flow) if isinstance(value, str) else msgspec.convert(value, Flow)
        except msgspec.MsgspecError as error:
            self.reader.problem(node, f"this is no flow: {error}")
            return None

    def remembered(self, kept: dict[str, Value]) -> dict[str, Value]:
        return {**kept, EXLETS_KEY: self._steps} if self._steps else kept


def inline_name(type: ExceptionType, task: str, id: int) -> str:
    """The generated name of an exlet in its rule. A dot distinguishes it from given names."""
    middle = "" if type in CASE_LEVEL or task == ALL_TASKS else f".{re.sub(r'[^A-Za-z0-9_]+', '-', task)}"
    return f"{type}{middle}.{id}"


def exlet_node(name: str, flow: Flow, remembered: Value, folder: Path) -> Value:
    """The node that gives this flow when it is read again."""
    for steps in (remembered, steps_of(flow)):
        if steps is not None and same_flow(reread_exlet(name, steps, folder), flow):
            return steps
    return {rule_keys.EXLET_MODEL: json.dumps(msgspec.to_builtins(flow), ensure_ascii=False)}


def reread_exlet(name: str, steps: Value, folder: Path) -> Flow | None:
    """What reading would make of these steps."""
    text = dump_if_faithful(steps)
    if text is None:
        return None
    try:
        node, problems = parse(text, "")
        reader = YamlReader("", text, folder)
        flow = build_exlet(reader, node, name, FlowFileLoader(folder))
    except BadFlow:
        return None
    return None if problems or reader.problems else flow


def same_flow(first: Flow | None, second: Flow) -> bool:
    """Whether two flows are one, wherever their files are."""
    return first is not None and without_folder(first) == without_folder(second)


def needs_folder(flow: Flow) -> bool:
    """Whether it takes files from where it was written."""
    return any(
        isinstance(activity, Stage) or (isinstance(activity, JobActivity) and not _is_command_alone(activity))
        for activity in walk_activities(flow)
    )


def _is_command_alone(job: JobActivity) -> bool:
    files = (job.inputs, job.replicas, job.unstaged, job.file_lists, job.container, job.software)
    return job.command is not None and not any(files)


def without_folder(flow: Flow) -> Flow:
    return msgspec.structs.replace(flow, folder="")
