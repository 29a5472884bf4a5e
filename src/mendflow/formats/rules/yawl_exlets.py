"""Steps of a conclusion in YAWL's rules, and the equivalent exlet.

Worklets keep their identifiers as the names of flows. Their results go back into the case, as in YAWL."""

from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.flow import Activity, Call, Flow, Parallel, PrimitiveStep, Sequence
from mendflow.core.model.repair import Primitive, Target
from mendflow.formats.names import NAME
from mendflow.formats.yaml.exlets import exlet_flow

ACTIONS: Final[dict[str, Primitive]] = {
    "suspend": Primitive.SUSPEND,
    "continue": Primitive.CONTINUE,
    "remove": Primitive.REMOVE,
    "restart": Primitive.RESTART,
    "complete": Primitive.COMPLETE,
    "fail": Primitive.FAIL,
}
TARGETS: Final[dict[str, Target]] = {
    "workitem": "item",
    "case": "case",
    "allcases": "all-cases",
    "ancestorCases": "ancestors",
}
THEIR_ACTION: Final = {ours: theirs for theirs, ours in ACTIONS.items()}
THEIR_TARGET: Final = {ours: theirs for theirs, ours in TARGETS.items()}
ITEM_ONLY: Final = frozenset({Primitive.RESTART, Primitive.COMPLETE, Primitive.FAIL})


class YawlStep(NamedTuple):
    action: str
    target: str


class UntranslatableAction(Exception):
    """Why a step cannot be done here."""


def exlet_of(name: str, steps: list[YawlStep]) -> Flow:
    return exlet_flow(name, [activity(step, f"step-{count}") for count, step in enumerate(steps, 1)], variables={})


def step_flaw(step: YawlStep) -> str | None:
    """Why a step has no counterpart here."""
    try:
        activity(step, "step")
    except UntranslatableAction as reason:
        return str(reason)
    return None


def known_steps(steps: list[YawlStep]) -> list[YawlStep]:
    return [step for step in steps if step_flaw(step) is None]


def activity(step: YawlStep, name: str) -> Activity:
    if step.action == "compensate":
        return compensate(step, name)
    if step.action not in ACTIONS:
        raise UntranslatableAction(f"there is no counterpart of the action `{step.action}`")
    target = TARGETS.get(step.target)
    if target is None or (ACTIONS[step.action] in ITEM_ONLY and target != "item"):
        raise UntranslatableAction(f"`{step.action}` cannot be done to `{step.target}`")
    do = ACTIONS[step.action]
    # In YAWL what comes after a failed item runs, as if the item had completed.
    return PrimitiveStep(name=name, do=do, target=target, settings={"throw": False} if do is Primitive.FAIL else {})


def compensate(step: YawlStep, name: str) -> Activity:
    worklets = [part.strip() for part in step.target.split(";") if part.strip()]
    if not worklets:
        raise UntranslatableAction("`compensate` names no worklet")
    calls = [Call(name=result_name(worklets, at, name), flow=worklet) for at, worklet in enumerate(worklets)]
    together: Activity = (
        calls[0] if len(calls) == 1 else Parallel(name=f"{name}.worklets", branches=tuple(calls), on_fault="finish")
    )
    writes = [
        PrimitiveStep(
            name=f"{name}.write-{count}",
            do=Primitive.WRITE,
            target="case",
            settings={"values": f"${{{{ jobs.`{call.name}`.outputs }}}}"},
        )
        for count, call in enumerate(calls, 1)
    ]
    return Sequence(name=f"{name}.compensate", body=(together, *writes))


def result_name(worklets: list[str], at: int, name: str) -> str:
    """What the results of a worklet are called: by its own name, where that is one and nobody else's."""
    if len(worklets) == 1:
        return name
    own = worklets[at]
    return own if NAME.fullmatch(own) and worklets.count(own) == 1 else f"{name}-{at + 1}"


def steps_in(flow: Flow) -> list[YawlStep] | None:
    """The steps that do what this exlet does, or None where YAWL has no words for it. There, what worklets give always
    goes back into the case."""
    if not isinstance(flow.body, Sequence):
        return None
    found: list[YawlStep] = []
    for each in flow.body.body:
        match each:
            case PrimitiveStep(do=do, target=target) if do in THEIR_ACTION:
                found.append(YawlStep(THEIR_ACTION[do], THEIR_TARGET[target]))
            case Sequence(body=(Call(flow=worklet), *_)):
                found.append(YawlStep("compensate", worklet))
            case Sequence(body=(Parallel(branches=branches), *_)):
                found.append(YawlStep("compensate", ";".join(call.flow for call in branches if isinstance(call, Call))))
            case _:
                return None
    try:
        again = exlet_of(flow.name, found)
    except UntranslatableAction:
        return None
    return found if without_writes(again) == without_writes(flow) else None


def without_writes(flow: Flow) -> list[Activity]:
    assert isinstance(flow.body, Sequence)
    return [
        msgspec.structs.replace(each, body=each.body[:1]) if isinstance(each, Sequence) else each
        for each in flow.body.body
    ]
