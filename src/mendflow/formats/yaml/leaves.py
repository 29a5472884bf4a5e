"""Steps with nothing inside: tasks, calls, staging, variables, waiting, faults, messages."""

from typing import Any, Literal

from mendflow.core.engine.messages import URL_NOT_STAGED
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Call,
    Compensate,
    Copy,
    Empty,
    Exit,
    Input,
    Invoke,
    Job,
    Publishing,
    Receive,
    Reply,
    Rethrow,
    Stage,
    Throw,
    UserTask,
    Wait,
)
from mendflow.formats.jsdl import JSDL_ENDING
from mendflow.formats.spelling import nearest
from mendflow.formats.yaml.build import Build, Seat
from mendflow.formats.yaml.document import Entries, Node, Scalar
from mendflow.formats.yaml.fields import Fields
from mendflow.formats.yaml.jobs import demand_given, publishing_of, stage_in
from mendflow.formats.yaml.reading import Reading
from mendflow.formats.yaml.shapes import VARIABLE_PATH, Name, Text

FLOW_FILES = (".yaml", ".yml", ".py", JSDL_ENDING)
VARIABLE = Name("the name of a variable", variable=True)
ELEMENT = Text("the name of a storage element")


def task(_: Build, fields: Fields, seat: Seat) -> Activity:
    return UserTask(
        role=fields.get("role", ""),
        title=fields.get("user-task", ""),
        description=fields.get("description", ""),
        data=fields.get("data"),
        fields=fields.get("fields", {}),
        deadline_ms=fields.get("deadline", 0),
        **seat.node(),
    )


def stage(build: Build, fields: Fields, seat: Seat) -> Activity:
    files = fields.get("stage", {})
    node = fields.node_of("stage")
    if isinstance(node, Entries):
        for name, entry in node.entries.items():
            demand_given(build.reading, entry.value, files.get(name))
    order = stage_in(fields.get("order", "parallel"))
    given = {name: source for name, source in files.items() if source is not None}
    if (target := fields.node_of("to")) is not None:
        return copies(build.reading, target, given, order, seat)
    if isinstance(node, Entries):
        for name, entry in node.entries.items():
            if is_url(given.get(name)):
                build.reading.problem(entry.value, URL_NOT_STAGED)
    return Stage(files=given, order=order, **seat.node())


def is_url(source: Any) -> bool:
    """Whether it certainly is one: what an expression gives is seen when the flow runs."""
    return isinstance(source, str) and "://" in source.partition("${{")[0]


def copies(
    reading: Reading, target: Node, files: dict[str, Any], order: Literal["parallel", "sequence"], seat: Seat
) -> Activity:
    """Files that go to storage elements: a job of a pilot that runs nothing."""
    if isinstance(target, Entries):
        publish = {}
        for name, entry in target.entries.items():
            if name not in files:
                reading.problem(entry.key, f"`stage` brings no `{name}`", nearest(name, files))
            if (publishing := publishing_of(reading, entry.value)) is not None:
                publish[name] = publishing
        for name in files.keys() - target.entries.keys():
            reading.problem(target, f"say where `{name}` goes too")
    else:
        element = ELEMENT.read(reading, target)
        publish = {name: Publishing(logical="", element=element or "") for name in files}
    return Job(
        inputs=files,
        files={name: name for name in files},
        publish=publish,
        link_inputs=True,
        stage_in=order,
        **seat.node(),
    )


def call(build: Build, fields: Fields, seat: Seat) -> Activity:
    node = fields.node_of("call")
    target = fields.get("call", "")
    inputs = fields.get("with", {})
    if node is None or not is_file(target):
        return Call(flow=target, inputs=inputs, domain=fields.get("domain", ""), **seat.node())
    flow = build.callables.find(build.reading, node, target)
    if flow is None:
        return Empty(**seat.node())
    known = build.called.setdefault(flow.name, flow)
    if known != flow:
        build.reading.problem(node, f"two different files hold a flow named `{flow.name}`; rename one")
    demand_inputs(build.reading, fields, flow.inputs, flow.name)
    return Call(flow=flow.name, inputs=inputs, domain=fields.get("domain", ""), **seat.node())


def select(_: Build, fields: Fields, seat: Seat) -> Activity:
    """A call whose flow is chosen by the rules when it starts."""
    fields.get("select")
    return Call(inputs=fields.get("with", {}), **seat.node())


def is_file(target: str) -> bool:
    return target.partition(".py:")[0].endswith(FLOW_FILES) or ".py:" in target or "/" in target


def demand_inputs(reading: Reading, fields: Fields, inputs: dict[str, Input], flow: str) -> None:
    node = fields.node_of("with")
    given = node.entries if isinstance(node, Entries) else {}
    for name, entry in given.items():
        if name not in inputs:
            reading.problem(entry.key, f"the flow `{flow}` has no input `{name}`", nearest(name, inputs))
    missing = [name for name, wanted in inputs.items() if wanted.required and name not in given]
    if missing:
        reading.problem(node or fields.node, f"the flow `{flow}` needs the input `{missing[0]}` under `with:`")


def assign(build: Build, fields: Fields, seat: Seat) -> Activity:
    node = fields.node_of("set")
    values = fields.get("set", {})
    if isinstance(node, Entries):
        for entry in node.entries.values():
            demand_variable(build.reading, entry.key)
    return Assign(copies=tuple(Copy(to=name, value=value) for name, value in values.items()), **seat.node())


def demand_variable(reading: Reading, key: Scalar) -> None:
    path = VARIABLE_PATH.fullmatch(str(key.value))
    if path is None:
        reading.problem(key, "a variable is expected here, or a part of one, such as `totals.rows` or `list[0]`")
        return
    name = VARIABLE.read(reading, Scalar(key.place, path.group(1)))
    if name:
        reading.changed(name, key.place)


def wait(_: Build, fields: Fields, seat: Seat) -> Activity:
    return Wait(duration=fields.get("wait", 0), **seat.node())


def wait_until(_: Build, fields: Fields, seat: Seat) -> Activity:
    return Wait(until=fields.get("wait-until", 0), **seat.node())


def throw(_: Build, fields: Fields, seat: Seat) -> Activity:
    return Throw(
        fault=fields.get("throw", ""), data=fields.get("data"), message=fields.get("message", ""), **seat.node()
    )


def rethrow(build: Build, fields: Fields, seat: Seat) -> Activity:
    fields.get("rethrow")
    if not build.reading.is_inside("catch"):
        build.reading.problem(fields.node, "`rethrow` stands only inside the `do` of a `catch`")
    return Rethrow(**seat.node())


def compensate(build: Build, fields: Fields, seat: Seat) -> Activity:
    scope = fields.get("compensate", "all")
    if not build.reading.is_inside("catch", "undo", "on-terminate"):
        build.reading.problem(fields.node, "`compensate` stands only inside `catch`, `undo` or `on-terminate`")
    return Compensate(scope=None if scope == "all" else scope, **seat.node())


def receive(build: Build, fields: Fields, seat: Seat) -> Activity:
    channel = fields.get("receive", "")
    build.reading.channels.add(channel)
    return Receive(
        channel=channel,
        variable=variable(build, fields),
        correlation=fields.get("match"),
        **seat.node(),
    )


def reply(build: Build, fields: Fields, seat: Seat) -> Activity:
    channel, node = fields.get("reply", ""), fields.node_of("reply")
    if channel and node is not None:
        build.reading.replies.append((channel, node.place))
    return Reply(channel=channel, value=fields.get("value"), fault=fields.get("fault", ""), **seat.node())


def invoke(build: Build, fields: Fields, seat: Seat) -> Activity:
    return Invoke(
        partner=fields.get("invoke", ""),
        operation=fields.get("operation", ""),
        value=fields.get("value"),
        variable=variable(build, fields),
        **seat.node(),
    )


def variable(build: Build, fields: Fields) -> str:
    name: str = fields.get("as", "")
    if name:
        build.reading.assigned(name)
    return name


def exit_case(_: Build, fields: Fields, seat: Seat) -> Activity:
    fields.get("exit")
    return Exit(**seat.node())


def empty(_: Build, fields: Fields, seat: Seat) -> Activity:
    fields.get("empty")
    return Empty(**seat.node())
