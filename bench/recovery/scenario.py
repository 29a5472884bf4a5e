"""What a scenario is, and the faults that scenarios are made of."""

import msgspec

from bench.recovery.nature import GIB, FailingAttempts, ScenarioNeeds, SchedulerOutage, Trouble
from mendflow.core.model.faults import AttemptStage, Category
from mendflow.core.model.jobs import Submission


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """`jobs` run at once; the case is well when all of them are. Each asks for `memory_bytes` and `wall_s`, and truly
    takes what `needs` says. With `replicas` its input can be had in two places; with `domains` there is another
    domain. `before` jobs of another case have run in this world earlier in the evening."""

    name: str
    category: Category
    stage: AttemptStage
    troubles: tuple[Trouble, ...] = ()
    pattern: Submission = Submission.NOTIFY
    needs: ScenarioNeeds = ScenarioNeeds()
    jobs: int = 1
    memory_bytes: int = 2 * GIB
    wall_s: float = 100
    replicas: bool = False
    domains: bool = False
    before: int = 0
    curable: bool = True


def away(category: Category, until_s: float | None = None) -> SchedulerOutage:
    return SchedulerOutage(category=category, until_s=until_s)


def own(times: int | None = None, **more: object) -> FailingAttempts:
    text = "it ended with exit code 1"
    return msgspec.convert(
        {"name": "exitCode", "category": "job", "message": text, "exit_code": 1, "times": times, **more},
        FailingAttempts,
    )


def stage_in(**more: object) -> FailingAttempts:
    text = "the input could not be brought: connection reset"
    given = {"name": "missingInput", "category": "data", "message": text, "stage": "stage-in", **more}
    return msgspec.convert(given, FailingAttempts)


def kept(**more: object) -> FailingAttempts:
    text = "its output could not be taken into keeping: connection reset"
    given = {"name": "notKept", "category": "output", "message": text, "stage": "stage-out", "after_s": 60, **more}
    return msgspec.convert(given, FailingAttempts)


def disk(**more: object) -> FailingAttempts:
    text = "the pilot's disk is full (0 bytes left)"
    given = {"name": "diskFull", "category": "resource", "message": text, "stage": "stage-in", "after_s": 1, **more}
    return msgspec.convert(given, FailingAttempts)


def start(**more: object) -> FailingAttempts:
    text = "the pilot could not start the job: Resource temporarily unavailable"
    given = {"name": "cannotStart", "category": "resource", "message": text, "stage": "start", "after_s": 1, **more}
    return msgspec.convert(given, FailingAttempts)
