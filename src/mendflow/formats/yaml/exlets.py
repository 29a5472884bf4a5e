"""Exlets: flows whose steps are primitives, and whatever else a flow can do.

An exlet has one input, `context`: what is known of the case that it mends. Its body stands in a scope whose variables
are those roots of the context that its expressions ask for, so that a step can say `${{ job.memory_bytes * 2 }}`. One
that the context does not have is null.

What a primitive is told becomes the settings of its `PrimitiveStep`:

    suspend, continue, remove   none; target is item, case, all-cases or ancestors
    restart                     with: what of its data is other this time
    force-complete              outputs
    force-fail                  fault, message, throw
    write                       values; target is case or item
    re-submit, retry-later      resources (by their names in Resources), env, container, avoid_hosts, sources, domain,
                                wait_ms, as Change has them; retry-later also level, 0 for the next, and mode
    re-stage                    way (same, parameters, replica, target), sources, parameters, resources.site, wait_ms,
                                publish_to, publish_on
    re-poll, re-register        wait_ms
    notify                      message, to, data

Only what was said is there. `compensate` is a call for each worklet, at once if there are several, and then a `write`
for what goes back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mendflow.core.model import flow as model
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Activity, Call, Empty, Flow, Input, Parallel, PrimitiveStep, Scope
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import Primitive, Target
from mendflow.core.model.templates import Template
from mendflow.core.rules import ROOTS
from mendflow.formats.files import flow_text
from mendflow.formats.names import NAME
from mendflow.formats.yaml import basic_steps, flow_file, flow_keys
from mendflow.formats.yaml import exlet_keys as words
from mendflow.formats.yaml.builder import FlowFinder, StepBuilder, StepFactory, StepHeader
from mendflow.formats.yaml.called_flows import FlowFileLoader
from mendflow.formats.yaml.document import ListNode, MapEntry, MapNode, ScalarNode, YamlNode, describe, parse
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import DataShape, MapOf

CONTEXT: Final = "context"
ONLY_OF_EXLETS: Final = frozenset(map(str, words.PRIMITIVES)) - frozenset(flow_keys.KINDS)
RESOURCES: Final = {
    "cpus": "cpus",
    "memory": "memory_bytes",
    "disk": "disk_bytes",
    "gpus": "gpus",
    "time": "wall_ms",
    "site": "site",
    "hosts": "hosts",
    "system": "system",
    "machine": "machine",
}
PLAIN: Final = {
    "env": "env",
    "container": "container",
    "avoid": "avoid_hosts",
    "sources": "sources",
    "domain": "domain",
    "wait": "wait_ms",
}
PUBLISHING: Final = {"to": "publish_to", "on": "publish_on"}
VALUES: Final = MapOf(DataShape(), expected="`all`, or a map of values,")


def load_exlet(path: str | Path) -> Flow:
    """The exlet in a file of its own. Raises BadFlow with every problem and its place."""
    path = Path(path)
    return read_exlet(flow_text(path, str(path)), path)


def is_exlet_file(path: str | Path) -> bool:
    """Whether a file that is no flow is meant as an exlet: a list of steps, or a map whose steps have a primitive."""
    try:
        root, _ = parse(flow_text(Path(path), str(path)), str(path))
    except BadFlow:
        return False
    if isinstance(root, MapNode) and ("jobs" in root.entries or not {"steps", *ONLY_OF_EXLETS} & root.entries.keys()):
        return False
    return isinstance(root, ListNode) or _has_primitive(root)


def _has_primitive(node: YamlNode) -> bool:
    if isinstance(node, ListNode):
        return any(map(_has_primitive, node.parts))
    if isinstance(node, MapNode):
        return bool(ONLY_OF_EXLETS & node.entries.keys()) or any(_has_primitive(e.value) for e in node.entries.values())
    return isinstance(node, ScalarNode) and node.value in ONLY_OF_EXLETS


def read_exlet(text: str, path: str | Path, roots: Iterable[str] = ROOTS) -> Flow:
    """The exlet in a text that stands, or would stand, at this path: a list of steps, or a map with `steps:`."""
    path = Path(path)
    root, problems = parse(text, str(path))
    reader = YamlReader(str(path), text, path.parent.resolve())
    reader.problems.extend(problems)
    flow = build_exlet(reader, root, flow_file.name_from(str(path)), FlowFileLoader(path.parent), roots)
    if reader.problems or flow is None:
        raise BadFlow(problems=flow_file.in_order(reader.problems, str(path)))
    return flow


def build_exlet(
    reader: YamlReader,
    node: YamlNode,
    name: str,
    callables: FlowFinder,
    roots: Iterable[str] = ROOTS,
) -> Flow | None:
    """The flow of an exlet, from its node in whatever file: a list of steps, one step, or a map with `steps:`. Whatever
    is wrong is told to the reading, with its place; the flow is None only where there is none at all. Each exlet has
    names of its own: two of them in one file do not see each other. `callables` finds the worklets that are files
    (`FlowFileLoader(folder)`), and `roots` are the names that the context may have."""
    inner = YamlReader(reader.file, reader.text, reader.folder, is_alone=reader.is_alone, sent=reader.sent)
    inner.problems = reader.problems
    inner.inputs = {CONTEXT: ""}
    known = frozenset(roots)
    for root in known:
        inner.assigned(root)
    build = StepBuilder(inner, MAKERS, callables, words.KINDS)
    fields = exlet_fields(inner, node)
    if fields is None:
        return None
    name = fields.get("name") or name
    build.env = fields.get("env", {})
    build.shell = fields.get("shell") or ""
    build.defaults = flow_file.defaults_of(inner, fields.node_of("defaults"))
    variables = fields.get("variables", {})
    for variable in variables:
        inner.assigned(variable)
    steps = fields.node_of("steps")
    body = build.in_order(steps, StepHeader(name="", prefix="")) if steps is not None else ()
    asked = {use.reference.name for use in inner.uses}
    flow = exlet_flow(
        name,
        body,
        variables={**context_of(asked & known), **variables},
        description=fields.get("description", ""),
        calls=tuple(build.called.values()),
        folder=str(reader.folder),
    )
    inner.judge_names(flow_file.activities_of(flow))
    return flow


def exlet_flow(name: str, steps: Sequence[Activity], *, variables: dict[str, Template], **more: Any) -> Flow:
    """The flow that these steps are when they mend a case. `context_of` gives the variables that come from there."""
    body = model.Sequence(name=f"{name}.steps", body=tuple(steps))
    return Flow(
        name=FlowName(name),
        exlet=True,
        inputs={CONTEXT: Input(type="map", required=True, description="what is known of the case that is mended")},
        body=Scope(name=f"{name}.exlet", variables=variables, body=body) if variables else body,
        **more,
    )


def context_of(roots: Iterable[str]) -> dict[str, Template]:
    """Variables for these roots of the context."""
    at = f"inputs.{CONTEXT}"
    return {root: f"${{{{ has({at}.{root}) ? {at}.{root} : null }}}}" for root in sorted(roots)}


def exlet_fields(reader: YamlReader, node: YamlNode) -> Fields | None:
    """The keys of an exlet. A list is its steps, and a step by itself is a list of one."""
    is_map = isinstance(node, MapNode)
    if isinstance(node, MapNode) and "steps" not in node.entries and any(key in words.KINDS for key in node.entries):
        node = ListNode(node.place, [node])
    if isinstance(node, ListNode) or (isinstance(node, ScalarNode) and isinstance(node.value, str)):
        steps = node if isinstance(node, ListNode) else ListNode(node.place, [node])
        node = MapNode(node.place, {"steps": MapEntry(ScalarNode(node.place, "steps"), steps)})
    if not isinstance(node, MapNode):
        reader.problem(node, f"an exlet is a list of steps, or a map with `steps:`, not {describe(node)}")
        return None
    return fields_of(reader, node, words.EXLET, "an exlet") if is_map else Fields(reader, node, words.EXLET)


def targeted_factory(do: Primitive) -> StepFactory:
    """For primitives whose word says what they are done to."""

    def make(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
        target: Target = fields.get(do, "item")
        if "item" in fields and target != "item":
            build.reader.problem(fields.node.entries["item"].key, f"`item` goes with `{do}: item`, not with {target}")
        return PrimitiveStep(do=do, target=target, item=fields.get("item", ""), **header.node())

    return make


def settings_factory(do: Primitive, settings: Callable[[Fields], dict[str, Any]]) -> StepFactory:
    """For primitives that take settings."""

    def make(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
        return PrimitiveStep(do=do, item=fields.get("item", ""), settings=settings(fields), **header.node())

    return make


def settings_from(fields: Fields, names: Mapping[str, str]) -> dict[str, Any]:
    """What was said under these keys, by the names that the settings have."""
    found = {ours: fields.get(key) for key, ours in names.items() if key in fields}
    return {name: value for name, value in found.items() if value is not None}


def change_settings(fields: Fields) -> dict[str, Any]:
    resources = settings_from(fields, RESOURCES)
    return {**({"resources": resources} if resources else {}), **settings_from(fields, PLAIN)}


def marker_factory(do: Primitive, **names: str) -> StepFactory:
    """For primitives that say something by being there, with these keys beside."""

    def settings(fields: Fields) -> dict[str, Any]:
        fields.get(do)
        return settings_from(fields, names)

    return settings_factory(do, settings)


def resubmit_settings(fields: Fields) -> dict[str, Any]:
    fields.get(Primitive.RESUBMIT)
    return change_settings(fields)


def retry_settings(fields: Fields) -> dict[str, Any]:
    level = fields.get(Primitive.RETRY_LATER, 0)
    return {"level": level, **settings_from(fields, {"mode": "mode"}), **change_settings(fields)}


def restage_settings(fields: Fields) -> dict[str, Any]:
    way = fields.get(Primitive.RESTAGE, "same")
    resources = settings_from(fields, {"site": "site"})
    names = {"sources": "sources", "parameters": "parameters", "wait": "wait_ms", **PUBLISHING}
    rest = settings_from(fields, names)
    return {"way": way, **({"resources": resources} if resources else {}), **rest}


def notify_settings(fields: Fields) -> dict[str, Any]:
    return {"message": fields.get(Primitive.NOTIFY, ""), **settings_from(fields, {"to": "to", "data": "data"})}


def write_step(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return write_back(fields, fields.get(Primitive.WRITE, {}), header.node())


def write_back(fields: Fields, values: Template, node: dict[str, Any]) -> PrimitiveStep:
    target: Target = fields.get("into", "item" if "item" in fields else "case")
    return PrimitiveStep(
        do=Primitive.WRITE, target=target, item=fields.get("item", ""), settings={"values": values}, **node
    )


def compensate(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    """Worklets at once, and then what they give back."""
    calls = worklets(build, fields, header)
    back = fields.node_of("write")
    if not calls:
        return Empty(**header.node())
    together: Activity = calls[0]
    if len(calls) > 1:
        together = Parallel(name=f"{header.name}.worklets", branches=tuple(calls), on_fault="finish")
    writes = writes_of(build, fields, header, back, calls) if back is not None else []
    name = f"{header.name}.compensate"
    return model.Sequence(name=name, body=(together, *writes), when=header.when)


def worklets(build: StepBuilder, fields: Fields, header: StepHeader) -> list[Call]:
    node = fields.node_of("compensate")
    assert node is not None
    parts = node.parts if isinstance(node, ListNode) else [node]
    if not parts:
        build.reader.problem(node, "`compensate` needs at least one worklet")
    made = [worklet(build, part, fields, header, alone=len(parts) == 1) for part in parts]
    return [call for call in made if isinstance(call, Call)]


def worklet(build: StepBuilder, node: YamlNode, fields: Fields, header: StepHeader, *, alone: bool) -> Activity:
    """One worklet: its flow, or a map that says also what it is given and what its results are called. One that is
    alone in a step is called as the step is, if that has a name, or if another has the worklet's own."""
    if isinstance(node, ScalarNode):
        node = MapNode(node.place, {"call": MapEntry(ScalarNode(node.place, "call"), node)})
    own = fields_of(build.reader, node, words.WORKLET, "a worklet")
    if own is None:
        return Empty(name=header.part("worklet"))
    if "with" in fields and "with" not in own:
        entries = {**own.node.entries, "with": fields.node.entries["with"]}
        own = Fields(build.reader, MapNode(own.node.place, entries), words.WORKLET)
    given, stem = own.get("name"), Path(own.get("call", "").partition(".py:")[0]).stem
    if alone and not given and ("name" in fields or not NAME.fullmatch(stem) or stem in build.named):
        return basic_steps.call(build, own, StepHeader(name=header.name, prefix=header.name))
    name = given or (stem if NAME.fullmatch(stem) else header.part("worklet"))
    build.name(name, own.node.place)
    return basic_steps.call(build, own, StepHeader(name=name, prefix=name))


def writes_of(
    build: StepBuilder, fields: Fields, header: StepHeader, back: YamlNode, calls: Sequence[Call]
) -> list[Activity]:
    if isinstance(back, ScalarNode) and back.value == "all":
        return [
            write_back(fields, f"${{{{ jobs.`{call.name}`.outputs }}}}", {"name": f"{header.name}.write-{count}"})
            for count, call in enumerate(calls, 1)
        ]
    values = VALUES.read(build.reader, back)
    return [write_back(fields, values, {"name": f"{header.name}.write"})] if values else []


MAKERS: Final[dict[str, StepFactory]] = {
    **flow_file.MAKERS,
    Primitive.SUSPEND: targeted_factory(Primitive.SUSPEND),
    Primitive.CONTINUE: targeted_factory(Primitive.CONTINUE),
    Primitive.REMOVE: targeted_factory(Primitive.REMOVE),
    Primitive.RESTART: marker_factory(Primitive.RESTART, **{"with": "with"}),
    Primitive.COMPLETE: marker_factory(Primitive.COMPLETE, outputs="outputs"),
    Primitive.FAIL: marker_factory(Primitive.FAIL, fault="fault", message="message", throw="throw"),
    Primitive.WRITE: write_step,
    Primitive.RESTAGE: settings_factory(Primitive.RESTAGE, restage_settings),
    Primitive.RESUBMIT: settings_factory(Primitive.RESUBMIT, resubmit_settings),
    Primitive.REPOLL: marker_factory(Primitive.REPOLL, wait="wait_ms"),
    Primitive.REREGISTER: marker_factory(Primitive.REREGISTER, wait="wait_ms"),
    Primitive.RETRY_LATER: settings_factory(Primitive.RETRY_LATER, retry_settings),
    Primitive.UNWIND: marker_factory(Primitive.UNWIND),
    Primitive.NOTIFY: settings_factory(Primitive.NOTIFY, notify_settings),
    "compensate": compensate,
}
assert set(words.KINDS) | {"for-each"} == set(MAKERS), "every kind of step has a maker"
