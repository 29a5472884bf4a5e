"""Classifies a failure, and whether a retry can help.

The two families are submission and execution failures. Recoverable means: the same job may succeed later, elsewhere, or
with more resources, without a change by a person. Each answer has its reason. Details of the fault (a signal, an exit
code, an exception's type) come before its category."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault

Family = Literal["submission", "execution", "other"]

FAMILIES: Final[dict[Category, Family]] = {
    Category.NETWORK: "submission",
    Category.SCHEDULER_DOWN: "submission",
    Category.REFUSED: "submission",
    Category.RESOURCE: "execution",
    Category.DATA: "execution",
    Category.INPUT: "execution",
    Category.JOB: "execution",
    Category.MEMORY: "execution",
    Category.TIME: "execution",
    Category.OUTPUT: "execution",
    Category.CLEANUP: "execution",
    Category.CANCELLED: "other",
    Category.FLOW: "other",
}

BY_CATEGORY: Final[dict[Category, tuple[bool, str]]] = {
    Category.NETWORK: (True, "the network may be back later, and another domain may be reachable now"),
    Category.SCHEDULER_DOWN: (True, "the scheduler may be back later, and another domain's is up"),
    Category.REFUSED: (True, "another domain may accept the job, or this one later"),
    Category.RESOURCE: (True, "the job did nothing wrong: another machine can run it"),
    Category.DATA: (True, "another copy of the file may be available, or the same one later"),
    Category.INPUT: (False, "the job is described wrongly, and a retry does not change that"),
    Category.JOB: (False, "the job itself failed, and nothing indicates that a retry would succeed"),
    Category.MEMORY: (True, "it may succeed with more memory"),
    Category.TIME: (True, "it may succeed with more time"),
    Category.OUTPUT: (False, "the job did not leave its declared outputs, and a retry does not change that"),
    Category.CLEANUP: (True, "the job had done its work; only cleaning up after it failed"),
    Category.CANCELLED: (False, "somebody cancelled it"),
    Category.FLOW: (False, "the flow itself threw it"),
}
"""Whether a fault of this category is recoverable if nothing more is known, and why."""

EXTERNAL_END_SIGNALS: Final = frozenset({1, 9, 15, 30})
"""SIGHUP, SIGKILL, SIGTERM, SIGPWR: a job does not send these to itself."""

TRY_AGAIN_EXIT_CODE: Final = 75
"""EX_TEMPFAIL of sysexits: the program itself says that it may succeed later."""

TRANSIENT_EXCEPTIONS: Final = frozenset({"ConnectionError", "TimeoutError", "BlockingIOError", "InterruptedError"})
STORING_FAULTS: Final = frozenset({"notKept"})


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """`type` is the fault's name; `stage` how far the job had come."""

    type: str
    category: Category
    family: Family
    recoverable: bool
    stage: str
    reason: str


def classify(fault: Fault) -> Classification:
    """Classify a fault, with the reason why a retry can help or cannot."""
    recoverable, reason = _specific_reason(fault) or BY_CATEGORY[fault.category]
    return Classification(
        type=fault.name,
        category=fault.category,
        family=FAMILIES[fault.category],
        recoverable=recoverable,
        stage=fault.stage or _default_stage(fault.category),
        reason=reason,
    )


def _specific_reason(fault: Fault) -> tuple[bool, str] | None:
    """The reason from the fault's details, if they say more than its category."""
    if fault.category is Category.OUTPUT and _failed_only_to_store(fault):
        return True, "the job made its files; only storing them failed"
    if fault.category is Category.RESOURCE and fault.lasting:
        return (
            False,
            "this machine fails the same way each time: another one may run it, or somebody must change this one",
        )
    if fault.category is Category.DATA and fault.lasting:
        return False, "the server has no whole copy of the file, and no other place is known: its job must run again"
    if fault.category is not Category.JOB:
        return None
    if fault.signal in EXTERNAL_END_SIGNALS:
        return True, f"it was ended from outside, by signal {fault.signal}"
    if fault.exit_code == TRY_AGAIN_EXIT_CODE:
        return True, f"its exit code {TRY_AGAIN_EXIT_CODE} asks to be tried again later"
    passing = TRANSIENT_EXCEPTIONS.intersection(_exception_types(fault))
    return (True, f"a {min(passing)} passes") if passing else None


def _failed_only_to_store(fault: Fault) -> bool:
    """Whether a job's outputs could not be stored or published for a reason that is temporary or that somebody may
    remove: a place that is full, away, or may not be written to; not one that has another file or is none at all."""
    if fault.name == "notPublished":
        said = fault.data if isinstance(fault.data, dict) else {}
        return said.get("passing") is True or said.get("lasting") is False
    return fault.name in STORING_FAULTS


def _exception_types(fault: Fault) -> list[str]:
    if not isinstance(fault.data, dict):
        return []
    types = fault.data.get("types")
    listed = types if isinstance(types, list) else []
    return [str(each).rpartition(".")[2] for each in [fault.data.get("type", ""), *listed]]


def _default_stage(category: Category) -> str:
    if FAMILIES[category] == "submission":
        return AttemptStage.SUBMISSION
    usual = {Category.DATA: AttemptStage.STAGE_IN, Category.OUTPUT: AttemptStage.STAGE_OUT}
    usual[Category.CLEANUP] = AttemptStage.CLEANUP
    return usual.get(category, AttemptStage.EXECUTION if FAMILIES[category] == "execution" else "")
