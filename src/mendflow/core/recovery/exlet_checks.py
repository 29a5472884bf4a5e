"""Validates what an exlet does as a whole: which primitives make sense where a rule concludes it, and after which
others.

The steps are followed in their order. A step that may be skipped, in a branch, a loop or under a condition, ends
nothing for certain, and may have suspended something. So nothing is refused that could work, and what is refused never
could: it would do nothing, or fail in the middle of a repair."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from mendflow.core.engine.activity_parts import parts_of
from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Activity, Flow, PrimitiveStep, Scope, Sequence
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.core.recovery.primitive_checks import step_problems

ITEM_PRIMITIVES: Final = frozenset(Primitive) - {Primitive.UNWIND, Primitive.NOTIFY}
"""Primitives that act on an item, unless their target is more."""

JOB_PRIMITIVES: Final = frozenset(
    {Primitive.RESTAGE, Primitive.RESUBMIT, Primitive.REPOLL, Primitive.REREGISTER, Primitive.RETRY_LATER}
)
"""Primitives that act on the job of an item."""

SUBMITS: Final = frozenset({Primitive.RESTAGE, Primitive.RESUBMIT, Primitive.RETRY_LATER, Primitive.RESTART})
"""Primitives that let the item run again: once is all that a failure has."""

ENDS: Final = frozenset({Primitive.REMOVE, Primitive.COMPLETE, Primitive.FAIL})
"""Primitives after which their target is over."""

CASES: Final = "case"
COVERED: Final[Mapping[str, tuple[str, ...]]] = {
    "case": ("case",),
    "ancestors": ("ancestors", "case"),
    "all-cases": ("all-cases", "ancestors", "case"),
}
"""What is suspended with a target, and can be continued by itself."""

WORDS: Final = {"case": "the case", "ancestors": "the cases above", "all-cases": "all cases"}


def rule_set_problems(rules: RuleSet) -> list[str]:
    """Everything that is wrong with the exlets of a set: by themselves, and where its rules conclude them."""
    found: list[str] = []
    for name, exlet in rules.exlets.items():
        found += [f"exlet {name}: {problem}" for problem in exlet_problems(exlet)]
    for type, trees in rules.trees.items():
        concluded = {rule.exlet: None for tree in trees.values() for rule in tree.rules.values()}
        for name in (each for each in concluded if each in rules.exlets):
            found += [f"exlet {name}: {problem}" for problem in misplaced_steps(type, rules.exlets[name])]
    return found


def rule_set_warnings(rules: RuleSet) -> list[str]:
    """What is allowed, and seldom meant: an exlet that ends and leaves something suspended."""
    return [f"exlet {name}: {warning}" for name, exlet in rules.exlets.items() for warning in exlet_warnings(exlet)]


def exlet_problems(exlet: Flow) -> list[str]:
    """What is wrong with the primitives of an exlet, each by itself and one after another."""
    return [*step_problems(primitives_of(exlet)), *ExletWalk(exlet).problems]


def exlet_warnings(exlet: Flow) -> list[str]:
    walked = ExletWalk(exlet)
    return [
        f"step {step.name}: {_about(step)} stays suspended when the exlet has ended, until a person continues it with"
        " `mendflow resume`; a `continue` at the end releases it"
        for step in walked.left_suspended()
    ]


def misplaced_steps(type: ExceptionType, exlet: Flow) -> list[str]:
    """What cannot work where a rule of this type concludes the exlet."""
    steps = list(primitives_of(exlet))
    if type is ExceptionType.SELECTION and steps:
        return [
            f"step {steps[0].name}: a selection chooses the flow that serves a call, and such a flow mends nothing: it"
            f" has no use for `{steps[0].do.value}`"
        ]
    return list(_without_target(type, steps))


def _without_target(type: ExceptionType, steps: Iterable[PrimitiveStep]) -> Iterator[str]:
    for step in steps:
        if reason := _missing_target(type, step):
            yield f"step {step.name}: {reason}"


def _missing_target(type: ExceptionType, step: PrimitiveStep) -> str:
    """Why there is nothing that the step could act on."""
    do = step.do.value
    if step.do is Primitive.UNWIND and type is ExceptionType.CASE_PRE:
        return f"at {type.value} the case has completed nothing that `{do}` could undo"
    if step.do not in ITEM_PRIMITIVES or step.target != "item":
        return ""
    if type is ExceptionType.CASE_PRE:
        return f"at {type.value} no item has begun, so there is nothing to {do}; use a target such as `case`"
    if type is ExceptionType.CASE_POST:
        return f"at {type.value} every item has ended, so there is nothing to {do}; use a target such as `case`"
    if type in CASE_LEVEL and not step.item:
        return f"at {type.value} there is no item at hand; say which with `item`, or use a target such as `case`"
    if type is ExceptionType.ITEM_PRE and not step.item and step.do in JOB_PRIMITIVES | {Primitive.RESTART}:
        return f"at {type.value} the item has not begun, so there is nothing to {do}; `write` changes its data"
    return ""


def primitives_of(exlet: Flow) -> Iterator[PrimitiveStep]:
    return (each for each in walk_activities(exlet) if isinstance(each, PrimitiveStep))


class _TargetState(msgspec.Struct):
    """What the steps so far have done to a target, each with the step that did."""

    ended: PrimitiveStep | None = None
    suspended: PrimitiveStep | None = None
    held_for_certain: bool = False
    runs_again: PrimitiveStep | None = None


class ExletWalk:
    """The steps of an exlet, followed in their order."""

    def __init__(self, exlet: Flow) -> None:
        self.problems: list[str] = []
        self._states: dict[str, _TargetState] = {}
        self._follow(exlet.body, certain=True)

    def left_suspended(self) -> list[PrimitiveStep]:
        """The steps whose suspension nothing lifts, and nothing ends."""
        over = self._state(CASES).ended is not None
        left = [state.suspended for state in self._states.values() if state.suspended and state.ended is None]
        return [] if over else list({step.name: step for step in left}.values())

    def _follow(self, activity: Activity, *, certain: bool) -> None:
        certain = certain and activity.when is None and not activity.targets
        if isinstance(activity, PrimitiveStep):
            self._take(activity, certain)
        in_order = isinstance(activity, Sequence | Scope)
        for part in parts_of(activity):
            self._follow(part, certain=certain and in_order)
        if isinstance(activity, Scope):
            handlers = (activity.catches, activity.messages, activity.alarms)
            for body in (each.body for kind in handlers for each in kind):
                self._follow(body, certain=False)

    def _take(self, step: PrimitiveStep, certain: bool) -> None:
        if step.do not in ITEM_PRIMITIVES:
            return
        if (problem := self._problem(step, certain)) is not None:
            self.problems.append(f"step {step.name}: {problem}")
            return
        for key in _keys(step):
            self._change(self._state(key), step, certain)

    def _problem(self, step: PrimitiveStep, certain: bool) -> str | None:
        do, about = step.do.value, _about(step)
        own = self._state(_keys(step)[0])
        ended = own.ended or (self._state(CASES).ended if step.target == "item" else None)
        if ended is not None:
            return f"`{do}` can do nothing: `{ended.do.value}` in step {ended.name} has ended {_about(ended)} already"
        if step.do is Primitive.CONTINUE and own.suspended is None:
            return f"`continue` releases only what this exlet has suspended, and no step before suspends {about}"
        if step.do is Primitive.SUSPEND and own.suspended is not None and own.held_for_certain and certain:
            return f"`suspend` can do nothing: step {own.suspended.name} has suspended {about} already"
        if step.do in SUBMITS and own.runs_again is not None and certain:
            again = own.runs_again
            return f"`{do}` can do nothing: {about} runs again already, by `{again.do.value}` in step {again.name}"
        return None

    def _state(self, key: str) -> _TargetState:
        return self._states.setdefault(key, _TargetState())

    @staticmethod
    def _change(state: _TargetState, step: PrimitiveStep, certain: bool) -> None:
        if step.do is Primitive.SUSPEND:
            state.suspended, state.held_for_certain = step, certain
        elif step.do in ENDS and certain:
            state.ended = step
        elif step.do in SUBMITS and certain:
            state.runs_again, state.suspended = step, None
        elif step.do is Primitive.CONTINUE:
            state.suspended = None if certain else state.suspended
            state.held_for_certain = False


def _keys(step: PrimitiveStep) -> tuple[str, ...]:
    """What the step acts on, itself first. Removing all cases ends this one, but not those above."""
    if step.target == "item":
        return (f"item {step.item}",)
    covered = COVERED[step.target]
    return tuple(key for key in covered if key in (step.target, CASES)) if step.do in ENDS else covered


def _about(step: PrimitiveStep) -> str:
    if step.target != "item":
        return WORDS[step.target]
    return f"item {step.item}" if step.item else "the item"
