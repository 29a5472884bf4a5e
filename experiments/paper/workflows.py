"""The three workflows of the paper, as flows: a chain, a split and a merge, each in two steps.

A step is a loop, and the second reads what the first has collected. So no job of step1 is made before every job of
step0 is over: that is how the paper's simulation makes its jobs."""

from typing import Final

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.templates import Template

STEP0: Final = "step0"
STEP1: Final = "step1"
RETRIES_MAX: Final = 30
"""So many that no workflow ends badly: with one file of ten lost, thirty bad ends in a row do not happen."""


def workflow(name: str, *, retry_wait_ms: int) -> Flow:
    """W1, W2 or W3. A failed job is submitted again after `retry_wait_ms`, and not sooner the second time."""
    first, second = WORKFLOWS[name]
    step0 = _step(STEP0, {}, retry_wait_ms, last=first, collect=Expr(f"jobs.`{STEP0}.iteration`.files.data"))
    step1 = _step(STEP1, _READS[name], retry_wait_ms, last=second)
    return Flow(name=FlowName(name.lower()), body=Sequence(name=f"{name}.steps", body=(step0, step1)))


def _step(
    name: str, inputs: dict[str, Template], retry_wait_ms: int, *, last: int, collect: Expr | None = None
) -> ForEach:
    job = JobActivity(
        name=f"{name}.iteration",
        label=name,
        command=name,
        inputs=inputs,
        files={"data": "data"},
        retries=RETRIES_MAX,
        retry_wait_ms=retry_wait_ms,
        stage_in="sequence",  # a job of CMS reads its files one after another while it runs
    )
    return ForEach(name=name, body=job, first=0, last=last - 1, collect=collect)


WORKFLOWS: Final[dict[str, tuple[int, int]]] = {"W1": (80, 80), "W2": (40, 80), "W3": (80, 40)}
"""How many jobs each has in step0 and in step1."""

_READS: Final[dict[str, dict[str, Template]]] = {
    "W1": {"one": "${{ jobs.step0.outputs[item] }}"},
    "W2": {"one": "${{ jobs.step0.outputs[int(item / 2)] }}"},
    "W3": {"one": "${{ jobs.step0.outputs[2 * item] }}", "other": "${{ jobs.step0.outputs[2 * item + 1] }}"},
}
"""What a job of step1 reads: its own file; a file that one other job reads too; two files of two jobs."""
