"""Validates an activity by itself: its name, numbers, paths, data.

A flow comes from a file that was checked, or from any API client. What no pilot could run and no journal could hold is
refused before a case exists, all of it at once."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec.structs import asdict

from mendflow.core.data.path_patterns import OWN_FOLDER
from mendflow.core.data.paths import name_flaw
from mendflow.core.data.protocols import target_flaw
from mendflow.core.domains.domain_names import domain_name_flaw
from mendflow.core.model.containers import container_flaws
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.domains import ANY_DOMAIN
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import (
    DURATION_MS_MAX,
    ActivityNode,
    Assign,
    Call,
    Catch,
    Flow,
    ForEach,
    Invoke,
    JobActivity,
    OnAlarm,
    OnMessage,
    Pick,
    PrimitiveStep,
    Receive,
    Reply,
    Scope,
    Stage,
    Throw,
    UserTask,
    Wait,
)
from mendflow.core.model.named_limits import limit_amount_flaw, limit_name_flaw
from mendflow.core.model.secrets import secret_use_flaw
from mendflow.core.model.shells import shell_flaw
from mendflow.core.model.units import auto_bound, duration_ms, is_auto, size_bytes
from mendflow.core.model.values import Value, check_value
from mendflow.lazy import lazy_pattern

NAME: Final = lazy_pattern(r"[\w. ~-]+")
NAME_CHARS_MAX: Final = 100
GENERATED_NAME_CHARS_MAX: Final = 1000
"""Generated names contain a dot, and grow with the nesting depth."""

VARIABLE: Final = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)
XML_VARIABLE: Final = lazy_pattern(r"[^\W\d][\w.-]*")
VARIABLE_PATH: Final = lazy_pattern(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*|\[\d{1,9}\]){0,63}")
REFERENCE: Final = lazy_pattern(r"[\w-]+(\.[\w-]+)*")
NAME_HINT: Final = frozenset({"site", "hosts", "system", "machine"})
"""Resources that are names, not amounts."""

COUNT_MAX: Final = 10_000_000
SIZE_MAX: Final = 2**53
PRIORITY_MAX: Final = 1_000_000_000


def activity_problems(activity: Any) -> Iterator[str]:
    """Everything that is wrong with an activity, a handler or the flow, except its parts."""
    if isinstance(activity, ActivityNode):
        yield from _names(activity)
    if check := _CHECKS.get(type(activity)):
        name = getattr(activity, "name", "") or getattr(activity, "channel", "") or "an alarm"
        yield from (f"{name:.100}: {problem}" for problem in check(activity))


def _names(activity: ActivityNode) -> Iterator[str]:
    if not activity.name:
        yield "an activity has no name; give each a name of its own"
    for what, text in (("name", activity.name), ("label", activity.label)):
        longest = GENERATED_NAME_CHARS_MAX if "." in text else NAME_CHARS_MAX
        if text and (len(text) > longest or not NAME.fullmatch(text)):
            yield f"{text!r:.100} cannot be a {what}: use letters, digits, _ . - ~ and spaces, {longest} at most"


def _job(job: JobActivity) -> Iterator[str]:
    if job.given is not None:
        if job != JobActivity(name=job.name, given=job.given):
            yield "a job that another domain has sent is given whole, and has nothing beside"
        return
    if (job.command is None) == (job.function is None) and not _copies(job):
        yield "a job has a command or a function, and not both"
    if job.command is not None and "\0" in job.command:
        yield "the command holds a NUL character; take it out"
    if flaw := shell_flaw(job.shell):
        yield flaw
    if job.container is not None:
        yield from container_flaws(job.container)
        if job.function is not None:
            yield "a function runs in the pilot's own Python, not in a container; run it as a command"
        if job.software is not None:
            yield "it has a container, and an environment or modules, which would not be seen in it; choose one"
    if job.function is not None:
        for what, text in (("module", job.function.module), ("function", job.function.name)):
            if not REFERENCE.fullmatch(text):
                yield f"{text!r:.80} is not the name of a {what}; write it as `package.module` and `function`"
    for name, value in job.env.items():
        if not name or "=" in name or "\0" in name:
            yield f"{name!r:.80} cannot be the name of an environment variable; use letters, digits and _"
        if isinstance(value, str) and "\0" in value:
            yield f"the environment variable {name:.80} holds a NUL character; take it out"
    inputs = [path for path in job.inputs if path != OWN_FOLDER]
    for path in (*inputs, *(path for path in job.files.values() if isinstance(path, str))):
        yield from _path(path)
    yield from _domain(job.domain)
    yield from _publications(job)
    yield from _numbers(job)
    yield from _data(list(job.args), job.kwargs, job.env, job.inputs, job.replicas, job.files)


def _call(call: Call) -> Iterator[str]:
    yield from _domain(call.domain)
    yield from _data(call.inputs)


def _domain(name: str) -> Iterator[str]:
    if name and name != ANY_DOMAIN and (flaw := domain_name_flaw(name)):
        yield flaw


def _copies(job: JobActivity) -> bool:
    """Whether it has nothing to run, because it only copies its inputs to storage elements."""
    only_files = job.command is None and job.function is None and bool(job.files)
    return only_files and job.files.keys() == job.publish.keys() and set(job.files.values()) <= job.inputs.keys()


def _publications(job: JobActivity) -> Iterator[str]:
    names: dict[str, str] = {}
    for output, given in job.publish.items():
        if output not in job.files:
            known = ", ".join(job.files) or "none"
            yield f"{output!r:.80} is to be published, and the job leaves no file of that name; its files: {known:.200}"
        if not all(isinstance(part, str) for part in (given.logical, given.element, given.data_set, given.url)):
            yield f"{output!r:.80} is to be published: its name, element and set must be texts"
        elif given.url:
            if given.logical or given.element or given.data_set:
                yield f"{output!r:.80} goes to a URL, or to a storage element under a logical name, and not both"
            elif "${{" not in given.url and (flaw := target_flaw(given.url)):
                yield f"{output!r:.80} cannot be written to its place: {flaw}"
        elif "${{" not in given.logical and (given.logical or not _copies(job)):
            if flaw := name_flaw(name := given.logical.removeprefix(LOGICAL_PREFIX)):
                yield f"{output!r:.80} cannot be published as {name!r:.200}: {flaw}"
            if names.setdefault(name, output) != output:
                yield f"{names[name]!r:.80} and {output!r:.80} cannot both be published as {name:.200}"


def _path(path: str) -> Iterator[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if "${{" not in path and (path.startswith("/") or ".." in parts or not parts or "\0" in path):
        yield f"{path!r:.200} must be a path inside the job's folder, without `..`"


def _input_above(path: str, inputs: Iterable[str]) -> str:
    """The input that a path is, or lies in; empty if there is none."""
    return next((each for each in inputs if f"{path}/".startswith(f"{each.rstrip('/')}/")), "")


def _numbers(job: JobActivity) -> Iterator[str]:
    yield from _number("retries", job.retries, COUNT_MAX)
    yield from _number("retry_wait_ms", job.retry_wait_ms, DURATION_MS_MAX)
    for rule in job.retry:
        yield from _number("retry: times", rule.times, COUNT_MAX)
        yield from _number("retry: wait_ms", rule.wait_ms, DURATION_MS_MAX)
        yield from _number("retry: factor", rule.factor, 1000, 1)
    yield from _number("expected_ms", job.expected_ms, DURATION_MS_MAX)
    yield from _number("priority", job.priority, PRIORITY_MAX, -PRIORITY_MAX)
    for name, limit in asdict(job.limits).items():
        if name != "named":
            yield from _number(f"limits.{name}", limit, SIZE_MAX)
    for use in job.secrets:
        if flaw := secret_use_flaw(use):
            yield flaw
        elif use.variable in job.env:
            yield f"`{use.variable}` is in `env` and in `secrets`; give it once"
        elif use.path and (taken := _input_above(use.path, (*job.inputs, *job.replicas))):
            yield f"the secret file `{use.path}` would be written into the input `{taken}`; give it another path"
    for name, amount in job.limits.named:
        if flaw := limit_name_flaw(name) or limit_amount_flaw(name, amount):
            yield flaw
    for name, amount in asdict(job.resources).items():
        if name == "hosts" and isinstance(amount, (list, tuple)) and all(isinstance(each, str) for each in amount):
            continue
        if isinstance(amount, str) and (name in NAME_HINT or "${{" in amount):
            continue
        if is_auto(amount) and name in ("memory_bytes", "wall_ms"):
            yield from _bound(name, amount)
            continue
        if name in NAME_HINT or isinstance(amount, bool) or not isinstance(amount, (int, float)):
            yield f"{name} is {amount!r:.80}; give a number or an expression"
        else:
            yield from _number(name, amount, DURATION_MS_MAX if name == "wall_ms" else SIZE_MAX)


def _bound(name: str, text: str) -> Iterator[str]:
    """The bound of an amount that is learned."""
    bound = auto_bound(text)
    if bound and not (duration_ms(bound) if name == "wall_ms" else size_bytes(bound)):
        yield f"{name} is {text!r:.80}; give a bound with its unit, as in `auto up to 16 GB` or `auto up to 4 h`"


def _number(what: str, value: Any, most: int, least: int = 0) -> Iterator[str]:
    """An expression is checked when it is evaluated."""
    if value is not None and not isinstance(value, Expr) and not least <= value <= most:
        yield f"{what} is {value}; it must be from {least} to {most}"


def _data(*templates: Value) -> Iterator[str]:
    for template in templates:
        if reason := check_value(template):
            yield f"its data cannot be stored: {reason}"


def _variable(name: str, *, xml: bool = False) -> Iterator[str]:
    if name and not (XML_VARIABLE if xml else VARIABLE).fullmatch(name):
        yield f"{name!r:.80} cannot be a variable: use letters, digits and _, first a letter"


def _assign(assign: Assign) -> Iterator[str]:
    for copy in assign.copies:
        if not VARIABLE_PATH.fullmatch(copy.to):
            yield f"{copy.to!r:.80} is not a path into a variable; write it as `name.member[0]`"
        yield from _data(copy.value)


def _alarm(alarm: Wait | OnAlarm) -> Iterator[str]:
    yield from _number("duration", alarm.duration, DURATION_MS_MAX)
    yield from _number("until", alarm.until, SIZE_MAX)
    yield from _number("every", getattr(alarm, "every", None), DURATION_MS_MAX, 1)


def _for_each(loop: ForEach) -> Iterator[str]:
    if loop.items is None and not loop.axes and (loop.first is None or loop.last is None):
        yield "a for-each needs `items`, or `axes`, or `first` and `last`"
    if loop.axes and (loop.items is not None or loop.first is not None or loop.last is not None):
        yield "a for-each goes over `items`, or `axes`, or numbers, and not over two of these"
    if loop.collect is not None and loop.collect_map:
        yield "a for-each has `collect` or `collect_map`, not both"
    yield from _number("first", loop.first, SIZE_MAX)
    yield from _number("last", loop.last, SIZE_MAX)
    if loop.min_success is not None and loop.min_ended is not None:
        yield "a for-each has `min_success` or `min_ended`, not both"
    yield from _number("min_success", loop.min_success, COUNT_MAX)
    yield from _number("min_ended", loop.min_ended, COUNT_MAX)
    yield from _number("max_parallel", loop.max_parallel, COUNT_MAX)
    yield from _tolerance(loop)
    for name in loop.axes:
        yield from _variable(name)
    yield from _variable(loop.variable, xml=isinstance(loop.first, Expr) and loop.first.language == XPATH)
    yield from _data(loop.items, loop.axes, loop.collect_map)


def _tolerance(loop: ForEach) -> Iterator[str]:
    if loop.tolerate is None and loop.tolerate_percent is None:
        return
    yield from _number("tolerate", loop.tolerate, COUNT_MAX)
    yield from _number("tolerate_percent", loop.tolerate_percent, 100)
    if loop.tolerate is not None and loop.tolerate_percent is not None:
        yield "a for-each tolerates a number of failed iterations or a percentage of them, not both"
    if loop.min_success is not None or loop.min_ended is not None:
        yield "a for-each has `tolerate`, or one of `min_success` and `min_ended`: all run, or some are ended"


def _task(task: UserTask) -> Iterator[str]:
    if not task.role.strip():
        yield "a user task needs the role of those who may do it"
    yield from _number("deadline_ms", task.deadline_ms, DURATION_MS_MAX)
    yield from _data(task.title, task.description, task.data, task.fields)


def _listener(listener: Receive | OnMessage) -> Iterator[str]:
    if not listener.channel:
        yield "it needs the name of a channel"
    yield from _variable(listener.variable)
    yield from _data(listener.correlation)


def _pick(pick: Pick) -> Iterator[str]:
    for message in pick.messages:
        yield from _listener(message)
    for alarm in pick.alarms:
        yield from _alarm(alarm)


def _scope(scope: Scope) -> Iterator[str]:
    for name in scope.variables:
        yield from _variable(name)
    yield from _data(scope.variables)


def _flow(flow: Flow) -> Iterator[str]:
    yield from _data(flow.outputs, *(each.default for each in flow.inputs.values()))
    yield from _data(flow.variables, flow.results)


_CHECKS: Final[dict[type, Callable[[Any], Iterator[str]]]] = {
    Flow: _flow,
    JobActivity: _job,
    Assign: _assign,
    Wait: _alarm,
    OnAlarm: _alarm,
    ForEach: _for_each,
    UserTask: _task,
    Receive: _listener,
    OnMessage: _listener,
    Pick: _pick,
    Scope: _scope,
    Catch: lambda catch: _variable(catch.variable, xml=catch.holds is not None),
    Stage: lambda stage: _data(stage.files),
    Call: _call,
    PrimitiveStep: lambda mend: _data(mend.item, mend.settings),
    Invoke: lambda invoke: _data(invoke.value),
    Reply: lambda reply: _data(reply.value),
    Throw: lambda throw: _data(throw.data, throw.message),
}
