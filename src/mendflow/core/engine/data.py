"""The data of a case: evaluates expressions in environments, and assigns variables.

Values are immutable: an assignment to a path copies the containers along that path and shares the rest, so two names
never share a change, and a failed assignment leaves no trace."""

from typing import Final

from mendflow.core.engine.faults import (
    INVALID_EXPRESSION_VALUE,
    MISMATCHED_ASSIGNMENT,
    SELECTION_FAILURE,
    SUB_LANGUAGE_FAULT,
    UNINITIALIZED_VARIABLE,
    FlowFault,
    flow_fault,
)
from mendflow.core.engine.name_lookup import NO_VARIABLES, NameLookup, declares, holder_of
from mendflow.core.engine.secrets_in_faults import quoted, without_secrets
from mendflow.core.engine.state import Case, Env, ScopeInstance
from mendflow.core.engine.xml import xpath_lookup
from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.expressions import ExpressionError, evaluate, resolve, resolve_as_text
from mendflow.core.expressions.comparisons import never_equal
from mendflow.core.expressions.work_budget import WORK, WORK_MAX
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import DURATION_MS_MAX
from mendflow.core.model.ids import Instant
from mendflow.core.model.templates import Template
from mendflow.core.model.values import Value, check_made_value
from mendflow.lazy import lazy_pattern

COUNT_VALUE_MAX: Final = 2**53
STEP: Final = lazy_pattern(r"\.?([A-Za-z_][\w-]*)|\[(\d+)\]")


class _WorkCounted:
    """Counts the work of an expression among that of the event, so that one with many is cut. A class, not a generator:
    every expression of every case is evaluated within one."""

    __slots__ = ("_before", "_case")

    def __init__(self, case: Case) -> None:
        self._case = case
        self._before = 0

    def __enter__(self) -> None:
        self._before = WORK.spent_in_all

    def __exit__(self, *raised: object) -> None:
        self._case.meter.spend(min(WORK.spent_in_all - self._before, WORK_MAX))


def _fault_of(case: Case, names: NameLookup, error: ExpressionError, source: Template) -> FlowFault:
    """An error quotes the value that it is about, which may be a secret."""
    told = without_secrets(str(error), source, [case.inputs, *names.values_in_sight()])
    return flow_fault(UNINITIALIZED_VARIABLE if names.missing else SUB_LANGUAGE_FAULT, told)


def value_of(case: Case, env: int, template: Template) -> Value:
    """A template's value; throws a fault."""
    names = NameLookup(case, env)
    try:
        with _WorkCounted(case):
            return resolve(template, names)
    except ExpressionError as error:
        raise _fault_of(case, names, error, template) from None


def text_of(case: Case, env: int, template: Template) -> str:
    """A template's value as text."""
    names = NameLookup(case, env)
    try:
        with _WorkCounted(case):
            return resolve_as_text(template, names)
    except ExpressionError as error:
        raise _fault_of(case, names, error, template) from None


def result_of(case: Case, env: int, expr: Expr, links: dict[str, bool] | None = None) -> Value:
    """An expression's value; throws a fault."""
    if expr.language == XPATH:
        return xpath_lookup.result(case, env, expr)
    names = NameLookup(case, env, links)
    try:
        with _WorkCounted(case):
            return evaluate(expr, names)
    except ExpressionError as error:
        raise _fault_of(case, names, error, expr.text) from None


def holds(case: Case, env: int, expr: Expr, links: dict[str, bool] | None = None) -> bool:
    """Whether a condition holds; it must be true or false."""
    if expr.language == XPATH:
        return xpath_lookup.truth(case, env, expr, links)
    value = result_of(case, env, expr, links)
    if not isinstance(value, bool):
        raise flow_fault(
            INVALID_EXPRESSION_VALUE,
            f"`{expr.text}` gives {quoted(value, expr.text)}; a condition must give true or false",
        )
    return value


def why_false(case: Case, env: int, expr: Expr) -> str:
    """That a condition is false, and what in it can never be equal."""
    never = [] if expr.language == XPATH else never_equal(expr.text, NameLookup(case, env))
    return "; ".join([f"its condition `{expr.text}` is false", *never])


def number_of(case: Case, env: int, given: Expr | int, what: str, most: int = COUNT_VALUE_MAX) -> int:
    """A whole number that is neither negative nor absurd."""
    value: Value = given
    if isinstance(given, Expr):
        value = xpath_lookup.number(case, env, given) if given.language == XPATH else result_of(case, env, given)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise flow_fault(
            INVALID_EXPRESSION_VALUE, f"{what} is {quoted(value, given)}; it must be a whole number, zero or more"
        )
    if value > most:
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{what} is {value}; it may be {most} at most")
    return value


def duration_of(case: Case, env: int, given: Expr | int, since: Instant, what: str) -> int:
    """A duration in milliseconds from an instant; negative ones are 0."""
    if not isinstance(given, Expr) or given.language != XPATH:
        return number_of(case, env, given, what, DURATION_MS_MAX)
    found = xpath_lookup.duration(case, env, given, since)
    if found > DURATION_MS_MAX:
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{what} is {found} ms; it may be {DURATION_MS_MAX} at most")
    return max(found, 0)


def instant_of(case: Case, env: int, given: Expr | int, what: str) -> Instant:
    """The instant; all past instants are alike."""
    if not isinstance(given, Expr) or given.language != XPATH:
        return number_of(case, env, given, what)
    return max(xpath_lookup.deadline(case, env, given), 0)


def steps_of(path: str) -> list[str | int]:
    """`totals.bytes[0]` as its steps."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = STEP.match(path, at)
        if found is None or (at == 0 and found.group(2)):
            raise flow_fault(SELECTION_FAILURE, f"`{path}` is not a path; write it as `name.member[0]`")
        steps.append(found.group(1) if found.group(2) is None else int(found.group(2)))
        at = found.end()
    if not steps:
        raise flow_fault(SELECTION_FAILURE, "an assignment needs a variable to go to")
    return steps


def put_at(target: Value, steps: list[str | int], value: Value, path: str) -> Value:
    """The target with the value at the end of the steps; the rest is shared."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        if not isinstance(target, list) or step > len(target):
            raise flow_fault(SELECTION_FAILURE, f"`{path}`: there is no list with a place {step}")
        return [
            *target[:step],
            put_at(target[step] if step < len(target) else None, rest, value, path),
            *target[step + 1 :],
        ]
    if target is not None and not isinstance(target, dict):
        raise flow_fault(SELECTION_FAILURE, f"`{path}`: `{step}` cannot be put into something that is not a map")
    known = target or {}
    return {**known, step: put_at(known.get(step), rest, value, path)}


def assign(case: Case, env: int, path: str, value: Value) -> None:
    """Set a variable, or a part of one."""
    steps = steps_of(path)
    name = steps[0]
    assert isinstance(name, str)
    holder = holder_of(case, env, name)
    whole = put_at(holder.variables.get(name), steps[1:], value, path)
    if len(steps) > 1 and (reason := check_made_value(whole)):
        raise flow_fault(SELECTION_FAILURE, f"`{path}`: with this `{name}` is no value: {reason}")
    if declares(case, holder, name):
        _demand_type(case, holder, name, whole)
    holder.variables[name] = whole


def _demand_type(case: Case, holder: Env, name: str, value: Value) -> None:
    """In a flow with XML, a variable holds its declared type or nothing."""
    world = case.plan.flow.xml
    assert world is not None, "only flows with XML declare"
    if reason := flaw(world, case.plan.nodes[holder.node].types[name], value):
        raise flow_fault(MISMATCHED_ASSIGNMENT, f"the variable {name} cannot hold this: {reason}")


def root_env(case: Case) -> Env | None:
    """The environment of the flow itself, while it runs."""
    root = case.instances.get(case.root)
    inner = root.inner if isinstance(root, ScopeInstance) else 0
    return case.envs.get(inner)


def variables_env(case: Case) -> Env | None:
    """The environment with the variables of the flow, while it runs; in BPEL the process is a scope in it."""
    root = case.instances.get(case.root)
    if not isinstance(root, ScopeInstance) or case.plan.flow.xml is None:
        return root_env(case)
    for child in root.children:
        process = case.instances[child]
        if isinstance(process, ScopeInstance) and process.node == case.plan.process:
            return case.envs.get(process.inner)
    return None


def flow_variables(case: Case) -> dict[str, Value]:
    """The variables of the flow itself, without its inputs and partner links."""
    env = variables_env(case)
    if env is None:
        return dict(case.variables)
    return {name: value for name, value in env.variables.items() if name != "inputs" and name[:1] not in NO_VARIABLES}


def case_data(case: Case) -> dict[str, Value]:
    """The data of a case: its inputs, overridden by the variables of its flow."""
    return {**case.inputs, **flow_variables(case)}


def all_results(case: Case) -> dict[str, dict[str, Value]]:
    """What the items of a whole case left; of several of one name, that of the outer scope."""
    found: dict[str, dict[str, Value]] = {}
    for env in reversed(case.envs.values()):
        found |= env.results
    return found


def open_env(case: Case, parent: int, variables: dict[str, Value], node: int, *, home: bool = False) -> Env:
    """A new environment inside another, for a node of the plan."""
    case.last_id += 1
    env = Env(case.last_id, parent, variables, {}, 1, home)
    if case.plan.flow.xml is not None:
        env.node = node
    case.envs[env.id] = env
    if parent:
        case.envs[parent].holds += 1
    return env


def release(case: Case, env: int) -> None:
    """Release an environment; it is dropped when nobody holds it."""
    envs = case.envs
    while env:
        found = envs[env]
        found.holds -= 1
        if found.holds:
            return
        del envs[env]
        env = found.parent
