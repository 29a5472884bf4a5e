"""Steps that hold others: sequences, parallel jobs, choices, loops, scopes and picks."""

from difflib import get_close_matches
from typing import Any, Final, Literal

from mendflow.core.data.path_patterns import is_pattern
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Branch,
    Catch,
    Choose,
    Empty,
    ForEach,
    OnAlarm,
    OnMessage,
    Parallel,
    Pick,
    Scope,
    Sequence,
    Until,
    While,
)
from mendflow.formats.hints import hint_for
from mendflow.formats.loops import iteration_files, iteration_outputs
from mendflow.formats.spelling import suggestion_for
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.builder import StepBuilder, StepHeader
from mendflow.formats.yaml.document import ListNode, MapEntry, MapNode, ScalarNode, YamlNode, describe
from mendflow.formats.yaml.fields import Fields, Key, fields_of
from mendflow.formats.yaml.job_graph import parallel_jobs
from mendflow.formats.yaml.loop_hints import LOOP_HINTS, files_hint, guessed_list
from mendflow.formats.yaml.references import rename_job_in
from mendflow.formats.yaml.shapes import DataShape, NameShape, sole_expression
from mendflow.formats.yaml.tolerance_shape import Percent
from mendflow.lazy import lazy_pattern

DATA = DataShape()
NAMED: Final = NameShape("the name of an element, or a key of `for-each`,", variable=True)
SOLE_INPUT: Final = lazy_pattern(r"""inputs\.([A-Za-z_]\w*)|inputs\[['"]([\w-]+)['"]\]""")
TAKING_LISTS: Final = ("include", "exclude")
ELEMENTS: Final = Key(DATA, "A list, an expression that gives one, or numbers: {from: 0, to: 9, step: 3}.")
RANGE_MAX: Final = 100_000


def steps(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("steps")
    assert node is not None
    return Sequence(body=build.in_order(node, header), **header.node())


def do(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    """A body of its own. It takes the step's name, unless something of the step's must hold for it as a whole."""
    node = fields.node_of("do")
    assert node is not None
    if isinstance(node, ListNode):
        return Sequence(body=build.in_order(node, header), **header.node())
    return Sequence(body=(build.body(node, header.part("do")),), **header.node())


def on_failure(build: StepBuilder, fields: Fields) -> Literal["stop", "finish"]:
    return "stop" if fields.get("on-failure", build.reader.on_failure) == "stop" else "finish"


def jobs(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("jobs")
    assert node is not None
    return parallel_jobs(build, node, header, on_failure(build, fields))


def parallel(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("parallel")
    assert node is not None
    return Parallel(branches=build.parts(node, header), on_fault=on_failure(build, fields), **header.node())


def choose(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    many = "choose-many" in fields
    node = fields.node_of("choose-many" if many else "choose")
    assert node is not None
    branches: list[Branch] = []
    otherwise: Activity | None = None
    parts = list_parts(build, node, "branches, each with `when` and `do`")
    if isinstance(node, ListNode) and not parts:
        build.reader.problem(node, "a choice needs at least one branch, with `when` and `do`")
    for count, part in enumerate(parts, 1):
        branch = fields_of(build.reader, part, flow_keys.BRANCH, "a branch")
        if branch is None:
            continue
        if "otherwise" in branch:
            if count != len(node.parts if isinstance(node, ListNode) else []) or "when" in branch or "do" in branch:
                build.reader.problem(part, "`otherwise` stands alone, and last")
            otherwise = inner_body(build, branch, "otherwise", header.part("otherwise"))
        elif "when" in branch and "do" in branch:
            when = branch.get("when", Expr("false"))
            branches.append(Branch(when=when, body=inner_body(build, branch, "do", header.part(count))))
        else:
            build.reader.problem(part, "a branch has `when` and `do`, or `otherwise`")
    return Choose(branches=tuple(branches), otherwise=otherwise, many=many, **header.node())


def list_parts(build: StepBuilder, node: YamlNode | None, of_what: str) -> list[YamlNode]:
    """The parts of a list; a single map stands for a list of one."""
    if isinstance(node, ListNode):
        return node.parts
    if isinstance(node, MapNode):
        return [node]
    if node is not None:
        build.reader.problem(node, f"a list of {of_what} is expected here, not {describe(node)}")
    return []


def inner_body(build: StepBuilder, fields: Fields, key: str, name: str) -> Activity:
    """The body under a key, or nothing to do."""
    node = fields.node_of(key)
    if node is None:
        return Empty(name=name)
    return build.body(node, name)


def while_loop(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return While(
        condition=fields.get("while", Expr("false")), body=repeat_step(build, fields, header, "while"), **header.node()
    )


def until_loop(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return Until(
        condition=fields.get("until", Expr("true")), body=repeat_step(build, fields, header, "until"), **header.node()
    )


def repeat_step(build: StepBuilder, fields: Fields, header: StepHeader, kind: str) -> Activity:
    if "do" not in fields:
        build.reader.problem(fields.node, f"`{kind}` needs `do:` with what is to be repeated")
    with build.reader.inside(kind):
        return inner_body(build, fields, "do", header.part("do"))


def for_each(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    """The loop has the step's name; its turn is shown under that name too, with the turn's number."""
    node = fields.node_of("for-each")
    kind = build.kind(fields.node)
    assert node is not None and kind is not None
    spec = loop_fields(build, node)
    options = loop_options(build, spec, node)
    turn = StepHeader(name=f"{header.name}.iteration", label=header.label or header.name, prefix=header.prefix)
    with build.reader.area(*(options.get("axes") or [options["variable"]]), "index"):
        body = build.make(kind, fields, turn)
        with build.reader.alias(header.name):
            collect = spec.get("collect") if spec else None
    if collect is not None:
        collect = rename_job_in(collect, header.name, turn.name)
    if isinstance(collect, dict):
        options["collect_map"] = collect
    else:
        options["collect"] = collect or iteration_outputs(body)
    return ForEach(body=body, collect_files=iteration_files(body), **options, **header.node())


def loop_fields(build: StepBuilder, node: YamlNode) -> Fields | None:
    """The keys of a loop. Those that are none of ours name the elements of lists, unless the list is under `items`."""
    if not isinstance(node, MapNode):
        return None
    names = [name for name in node.entries if name not in flow_keys.FOR_EACH]
    if not names or any(key in node.entries for key in ("items", "from", "to")):
        return fields_of(build.reader, node, flow_keys.FOR_EACH, "`for-each`", LOOP_HINTS)
    good = {
        name: entry
        for name, entry in node.entries.items()
        if name not in names or is_name(build, entry, alone=len(names) == 1)
    }
    table = {**flow_keys.FOR_EACH, **{name: ELEMENTS for name in names}}
    return Fields(build.reader, MapNode(node.place, good), table)


def is_name(build: StepBuilder, entry: MapEntry, *, alone: bool) -> bool:
    """Whether a key of a loop names an element; else it says what is wrong with it. A word of another tool names one
    if a list stands there, unless it is one that takes a list there too."""
    key = entry.key
    is_list = isinstance(entry.value, ListNode) or is_sole_expression(entry.value)
    if (hint := hint_for(str(key.value), LOOP_HINTS)) and (not is_list or (key.value in TAKING_LISTS and not alone)):
        if isinstance(entry.value, ScalarNode) and is_pattern(str(entry.value.value)):
            hint = files_hint(str(entry.value.value))
        build.reader.problem(key, f"`for-each` has no key `{key.value}`; {hint}")
        return False
    if likely := mistyped(str(key.value)):
        build.reader.problem(key, f"`for-each` has no key `{key.value}`", likely)
        return False
    return NAMED.read(build.reader, key) is not None


def mistyped(name: str) -> str:
    """The key that was probably meant; `item` is a good name for an element."""
    close = get_close_matches(name.lower(), flow_keys.FOR_EACH, 1, 0.85) if name != "item" else []
    return f"`{close[0]}`" if close else suggestion_for(name, flow_keys.FOR_EACH) if "-" in name else ""


def loop_options(build: StepBuilder, spec: Fields | None, node: YamlNode) -> dict[str, Any]:
    if spec is None:
        return {"items": items_of(build, node), "variable": "item", "on_fault": build.reader.on_failure}
    names = [name for name in spec.node.entries if name not in flow_keys.FOR_EACH]
    demand_one_way(build, spec, node, names)
    items = spec.node_of("items")
    found: dict[str, Any] = {
        "items": items_of(build, items) if items is not None else None,
        "first": spec.get("from"),
        "last": spec.get("to"),
        "variable": spec.get("as", "item"),
        "parallel": spec.get("in", "parallel") == "parallel",
        "max_parallel": spec.get("max-parallel", 0),
        "min_success": spec.get("min-success"),
        "min_ended": spec.get("min-ended"),
        "on_fault": spec.get("on-failure", build.reader.on_failure),
        **tolerance(spec),
    }
    given = [] if "items" in spec or found["first"] is not None else names
    lists = {name: items_of(build, element, name) for name in given if (element := spec.node_of(name)) is not None}
    if len(lists) == 1:
        found["variable"], found["items"] = next(iter(lists.items()))
    elif lists:
        found["axes"], found["zip"] = lists, spec.get("zip", False)
        sizes = {len(each) for each in lists.values() if isinstance(each, list)}
        if found["zip"] and len(sizes) > 1:
            build.reader.problem(node, "lists that are zipped must be of one length")
    return found


def demand_one_way(build: StepBuilder, spec: Fields, node: YamlNode, names: list[str]) -> None:
    """A loop goes over one list, several named ones, or numbers."""
    problem = build.reader.problem
    if names and "as" in spec:
        problem(spec.node.entries["as"].key, f"`as` goes with `items`; the element is called `{names[0]}` already")
    if "zip" in spec and len(names) < 2:
        problem(spec.node.entries["zip"].key, "`zip` is for two or more lists with names")
    if isinstance(node, MapNode) and len(node.entries) > len(spec.node.entries):
        return  # it was told what is wrong with a name
    if not names and isinstance(spec.node_of("in"), ListNode):
        return  # it was told that `in` takes no list
    if not names and ("items" in spec) == ("from" in spec or "to" in spec):
        problem(
            node,
            "`for-each` goes over lists with names (`sample: [...]`), over `items`, or `from` a number `to` another",
        )
    elif not names and "items" not in spec and not ("from" in spec and "to" in spec):
        problem(node, "`from` and `to` go together")
    if "min-success" in spec and "min-ended" in spec:
        problem(node, "`for-each` has `min-success` or `min-ended`, not both")
    if "tolerate" in spec and ("min-success" in spec or "min-ended" in spec):
        text = "`tolerate` lets all iterations run; `min-success` and `min-ended` end some. Take one"
        problem(spec.node.entries["tolerate"].key, text)


def tolerance(spec: Fields) -> dict[str, Any]:
    given = spec.get("tolerate")
    return {"tolerate_percent": given.percent} if isinstance(given, Percent) else {"tolerate": given}


def range_of(build: StepBuilder, node: MapNode) -> list[int] | str | None:
    """The numbers of `{from: 0, to: 9, step: 3}`, or the expression for them; None if it is no such map."""
    if not {"from", "to"} <= node.entries.keys() <= {"from", "to", "step"}:
        return None
    parts = {key: entry.value for key, entry in node.entries.items()}
    bounds = {key: part.value if isinstance(part, ScalarNode) else None for key, part in parts.items()}
    step = bounds.get("step", 1)
    if type(step) is not int or step == 0:
        build.reader.problem(parts["step"], "`step` is a whole number, and not 0")
        return []
    first, last = bounds["from"], bounds["to"]
    if type(first) is int and type(last) is int:
        return numbers_of(build, node, range(first, last + (1 if step > 0 else -1), step))
    texts = [sole_expression(each) if isinstance(each, str) else each for each in (first, last)]
    if any(type(each) not in (int, str) for each in texts):
        build.reader.problem(node, "`from` and `to` are whole numbers, or expressions that give them")
        return []
    DATA.read(build.reader, node)
    return f"${{{{ range({texts[0]}, ({texts[1]}) {'+' if step > 0 else '-'} 1, {step}) }}}}"


def numbers_of(build: StepBuilder, node: MapNode, numbers: range) -> list[int]:
    if len(numbers) > RANGE_MAX:
        build.reader.problem(node, f"these are {len(numbers):,} numbers; a list has at most {RANGE_MAX:,}")
        return []
    return list(numbers)


def items_of(build: StepBuilder, node: YamlNode, name: str = "") -> Any:
    if name and isinstance(node, MapNode) and (numbers := range_of(build, node)) is not None:
        return numbers
    if isinstance(node, (ScalarNode, MapNode)) and not is_sole_expression(node):
        message = f"a list is expected here, or ${{{{ an expression }}}} that gives one, not {describe(node)}"
        hint, likely = guessed_list(node, name)
        build.reader.problem(node, f"{message}; {hint}" if hint else message, likely)
        return []
    text = sole_expression(node.value) if isinstance(node, ScalarNode) and isinstance(node.value, str) else None
    if text is not None and (found := SOLE_INPUT.fullmatch(text.strip())):
        build.reader.looped_inputs.append((found[1] or found[2], node.place))
    return DATA.read(build.reader, node)


def is_sole_expression(node: YamlNode) -> bool:
    return isinstance(node, ScalarNode) and isinstance(node.value, str) and sole_expression(node.value) is not None


def scope(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("scope")
    assert node is not None
    reader = build.reader
    variables = fields.get("variables", {})
    with reader.area(*variables):
        body = build.body(node, header.part("body"))
        catches = tuple(
            catch(build, part, header.part(f"catch-{count}"))
            for count, part in enumerate(list_parts(build, fields.node_of("catch"), "handlers"), 1)
        )
        with reader.inside("undo"):
            compensation = inner_body(build, fields, "undo", header.part("undo")) if "undo" in fields else None
        with reader.inside("on-terminate"):
            termination = (
                inner_body(build, fields, "on-terminate", header.part("end")) if "on-terminate" in fields else None
            )
        messages, alarms = event_handlers(build, fields, header, every=True)
    return Scope(
        body=body,
        variables=variables,
        catches=catches,
        compensation=compensation,
        termination=termination,
        messages=messages,
        alarms=alarms,
        isolated=fields.get("isolated", False),
        **header.node(),
    )


def catch(build: StepBuilder, node: YamlNode, name: str) -> Catch:
    fields = fields_of(build.reader, node, flow_keys.CATCH, "a handler")
    if fields is None:
        return Catch(body=Empty(name=name))
    variable = fields.get("as", "fault")
    with build.reader.area(variable), build.reader.inside("catch"):
        body = inner_body(build, fields, "do", name)
    return Catch(body=body, fault=fields.get("fault"), variable=variable)


def event_handlers(
    build: StepBuilder, fields: Fields, header: StepHeader, *, every: bool
) -> tuple[tuple[OnMessage, ...], tuple[OnAlarm, ...]]:
    messages = list_parts(build, fields.node_of("on-message"), "messages")
    alarms = list_parts(build, fields.node_of("on-alarm"), "alarms")
    return (
        tuple(on_message(build, part, header.part(f"message-{count}")) for count, part in enumerate(messages, 1)),
        tuple(on_alarm(build, part, header.part(f"alarm-{count}"), every) for count, part in enumerate(alarms, 1)),
    )


def on_message(build: StepBuilder, node: YamlNode, name: str) -> OnMessage:
    fields = fields_of(build.reader, node, flow_keys.ON_MESSAGE, "a message")
    if fields is None:
        return OnMessage(channel="", body=Empty(name=name))
    variable = fields.get("as", "message")
    correlation = fields.get("match")
    with build.reader.area(variable):
        body = inner_body(build, fields, "do", name)
    channel = fields.get("channel", "")
    build.reader.channels.add(channel)
    return OnMessage(channel=channel, body=body, variable=variable, correlation=correlation)


def on_alarm(build: StepBuilder, node: YamlNode, name: str, every: bool) -> OnAlarm:
    fields = fields_of(build.reader, node, flow_keys.ON_ALARM, "an alarm")
    if fields is None:
        return OnAlarm(body=Empty(name=name))
    if "every" in fields and not every:
        build.reader.problem(node, "`every` is for the alarms of a scope; a pick waits for one event")
    if not any(key in fields for key in ("after", "at", "every")):
        build.reader.problem(node, "an alarm needs `after` (a duration), `at` (a moment) or `every` (a duration)")
    with build.reader.area():
        body = inner_body(build, fields, "do", name)
    return OnAlarm(body=body, duration=fields.get("after"), until=fields.get("at"), every=fields.get("every"))


def pick(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("pick")
    assert node is not None
    given = fields_of(build.reader, node, flow_keys.PICK, "`pick`")
    if given is None:
        return Empty(**header.node())
    messages, alarms = event_handlers(build, given, header, every=False)
    if not messages and not alarms:
        build.reader.problem(node, "`pick` needs something to wait for: `on-message` or `on-alarm`")
    return Pick(messages=messages, alarms=alarms, **header.node())
