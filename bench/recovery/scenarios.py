"""The scenarios: what goes wrong, at which stage, for how long, and how the job was handed over.

They cover the categories of failures by the stages in which they happen and the four ways of submission. `curable`
says whether anything could bring the job to a good end; what is not curable should be told soon, not tried for long."""

from typing import Final

from bench.recovery.nature import GIB, FailingAttempts, HostLoss, LostMessages, ScenarioNeeds
from bench.recovery.scenario import Scenario, away, disk, kept, own, stage_in, start
from mendflow.core.model.faults import AttemptStage, Category
from mendflow.core.model.jobs import Submission

MINUTE_S: Final = 60.0
NOTIFY, POLL, WAIT, FORGET = Submission.NOTIFY, Submission.POLL, Submission.WAIT, Submission.FORGET

ANT: Final = frozenset({"ant"})

SUBMISSION: Final = [
    *(
        Scenario(
            name=f"line down for 20 s, {way}",
            category=Category.NETWORK,
            stage=AttemptStage.SUBMISSION,
            pattern=way,
            troubles=(away(Category.NETWORK, 20),),
        )
        for way in Submission
    ),
    Scenario(
        name="line down for 8 min",
        category=Category.NETWORK,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.NETWORK, 8 * MINUTE_S),),
    ),
    Scenario(
        name="line down for 8 min, another domain there",
        category=Category.NETWORK,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.NETWORK, 8 * MINUTE_S),),
        domains=True,
    ),
    Scenario(
        name="the answer to a poll is lost",
        category=Category.NETWORK,
        stage=AttemptStage.EXECUTION,
        pattern=POLL,
        troubles=(LostMessages(what="polls", times=2),),
    ),
    Scenario(
        name="scheduler restarts, 40 s",
        category=Category.SCHEDULER_DOWN,
        stage=AttemptStage.SUBMISSION,
        pattern=WAIT,
        troubles=(away(Category.SCHEDULER_DOWN, 40),),
    ),
    Scenario(
        name="scheduler down for 15 min, poll",
        category=Category.SCHEDULER_DOWN,
        stage=AttemptStage.SUBMISSION,
        pattern=POLL,
        troubles=(away(Category.SCHEDULER_DOWN, 15 * MINUTE_S),),
    ),
    Scenario(
        name="scheduler down for 50 min",
        category=Category.SCHEDULER_DOWN,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.SCHEDULER_DOWN, 50 * MINUTE_S),),
    ),
    Scenario(
        name="scheduler down for good, another domain there",
        category=Category.SCHEDULER_DOWN,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.SCHEDULER_DOWN),),
        domains=True,
    ),
    Scenario(
        name="scheduler down for good",
        category=Category.SCHEDULER_DOWN,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.SCHEDULER_DOWN),),
        curable=False,
    ),
    Scenario(
        name="queue closed for 5 min, poll",
        category=Category.REFUSED,
        stage=AttemptStage.SUBMISSION,
        pattern=POLL,
        troubles=(away(Category.REFUSED, 5 * MINUTE_S),),
    ),
    Scenario(
        name="queue closed for 5 min, wait",
        category=Category.REFUSED,
        stage=AttemptStage.SUBMISSION,
        pattern=WAIT,
        troubles=(away(Category.REFUSED, 5 * MINUTE_S),),
    ),
    Scenario(
        name="refused for good, another domain there",
        category=Category.REFUSED,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.REFUSED),),
        domains=True,
    ),
    Scenario(
        name="refused for good",
        category=Category.REFUSED,
        stage=AttemptStage.SUBMISSION,
        troubles=(away(Category.REFUSED),),
        curable=False,
    ),
]

RESOURCES: Final = [
    *(
        Scenario(
            name=f"pilot lost, {way}",
            category=Category.RESOURCE,
            stage=AttemptStage.EXECUTION,
            pattern=way,
            troubles=(HostLoss(host="ant", at_s=20),),
        )
        for way in Submission
    ),
    Scenario(
        name="all pilots gone for 10 min",
        category=Category.RESOURCE,
        stage=AttemptStage.EXECUTION,
        troubles=tuple(HostLoss(host=host, at_s=20, back_s=10 * MINUTE_S) for host in ("ant", "bee", "elk")),
    ),
    Scenario(
        name="the only host that is large enough is gone, another domain there",
        category=Category.RESOURCE,
        stage=AttemptStage.SUBMISSION,
        memory_bytes=32 * GIB,
        troubles=(HostLoss(host="elk", at_s=0),),
        domains=True,
    ),
    Scenario(
        name="a host that comes and goes, six jobs",
        category=Category.RESOURCE,
        stage=AttemptStage.EXECUTION,
        jobs=6,
        troubles=(HostLoss(host="ant", at_s=20, back_s=40, again_s=20),),
    ),
    Scenario(
        name="a host with a full disk, six jobs",
        category=Category.RESOURCE,
        stage=AttemptStage.STAGE_IN,
        jobs=6,
        troubles=(disk(hosts=ANT),),
    ),
    Scenario(
        name="all disks full for 12 min",
        category=Category.RESOURCE,
        stage=AttemptStage.STAGE_IN,
        troubles=(disk(until_s=12 * MINUTE_S),),
    ),
    Scenario(
        name="a host that starts nothing, six jobs",
        category=Category.RESOURCE,
        stage=AttemptStage.START,
        jobs=6,
        troubles=(start(hosts=ANT),),
    ),
    Scenario(
        name="nothing can be started for 2 h",
        category=Category.RESOURCE,
        stage=AttemptStage.START,
        troubles=(start(until_s=120 * MINUTE_S),),
    ),
]

DATA: Final = [
    *(
        Scenario(
            name=f"stage-in fails twice, {way}",
            category=Category.DATA,
            stage=AttemptStage.STAGE_IN,
            pattern=way,
            troubles=(stage_in(times=2),),
        )
        for way in Submission
    ),
    Scenario(
        name="a replica is gone, another is there",
        category=Category.DATA,
        stage=AttemptStage.STAGE_IN,
        replicas=True,
        troubles=(stage_in(source="/archive/one/plate"),),
    ),
    Scenario(
        name="a replica is gone, another is there, poll",
        category=Category.DATA,
        stage=AttemptStage.STAGE_IN,
        pattern=POLL,
        replicas=True,
        troubles=(stage_in(source="/archive/one/plate"),),
    ),
    Scenario(
        name="the data store is away for 9 min",
        category=Category.DATA,
        stage=AttemptStage.STAGE_IN,
        replicas=True,
        troubles=(stage_in(until_s=9 * MINUTE_S),),
    ),
    Scenario(
        name="the data is gone for good",
        category=Category.DATA,
        stage=AttemptStage.STAGE_IN,
        replicas=True,
        troubles=(stage_in(),),
        curable=False,
    ),
]

OWN: Final = [
    Scenario(
        name="the command is wrong",
        category=Category.INPUT,
        stage=AttemptStage.START,
        troubles=(
            FailingAttempts(
                name="badCommand",
                category=Category.INPUT,
                message="the pilot could not start the job: Argument list too long",
                stage=AttemptStage.START,
                after_s=1,
            ),
        ),
        curable=False,
    ),
    Scenario(
        name="there is no such function, poll",
        category=Category.INPUT,
        stage=AttemptStage.START,
        pattern=POLL,
        troubles=(
            FailingAttempts(
                name="noSuchFunction",
                category=Category.INPUT,
                message="the module has no function f",
                stage=AttemptStage.START,
                after_s=1,
            ),
        ),
        curable=False,
    ),
    Scenario(
        name="exit code 1, always",
        category=Category.JOB,
        stage=AttemptStage.EXECUTION,
        troubles=(own(after_s=30),),
        curable=False,
    ),
    Scenario(
        name="an exception, always, wait",
        category=Category.JOB,
        stage=AttemptStage.EXECUTION,
        pattern=WAIT,
        troubles=(
            FailingAttempts(name="ValueError", category=Category.JOB, message="ValueError: no such column", after_s=30),
        ),
        curable=False,
    ),
    Scenario(
        name="a crash by signal 11, always, poll",
        category=Category.JOB,
        stage=AttemptStage.EXECUTION,
        pattern=POLL,
        troubles=(
            FailingAttempts(
                name="signal", category=Category.JOB, message="it was ended by signal 11", signal=11, after_s=30
            ),
        ),
        curable=False,
    ),
    Scenario(
        name="exit code 1, the first time",
        category=Category.JOB,
        stage=AttemptStage.EXECUTION,
        troubles=(own(times=1, after_s=30),),
    ),
    Scenario(
        name="exit code 1 on one host, twelve jobs",
        category=Category.JOB,
        stage=AttemptStage.EXECUTION,
        jobs=12,
        before=9,
        troubles=(own(after_s=2, hosts=["ant"]),),
    ),
]

AMOUNTS: Final = [
    *(
        Scenario(
            name=f"three times the memory it asked for, {way}",
            category=Category.MEMORY,
            stage=AttemptStage.EXECUTION,
            pattern=way,
            needs=ScenarioNeeds(memory_bytes=6 * GIB),
        )
        for way in Submission
    ),
    Scenario(
        name="a little more memory than it asked for, ten jobs",
        category=Category.MEMORY,
        stage=AttemptStage.EXECUTION,
        jobs=10,
        needs=ScenarioNeeds(memory_bytes=2 * GIB + GIB // 2),
    ),
    Scenario(
        name="memory that only the largest host has",
        category=Category.MEMORY,
        stage=AttemptStage.EXECUTION,
        memory_bytes=12 * GIB,
        needs=ScenarioNeeds(memory_bytes=50 * GIB),
    ),
    Scenario(
        name="more memory than any host has",
        category=Category.MEMORY,
        stage=AttemptStage.EXECUTION,
        needs=ScenarioNeeds(memory_bytes=200 * GIB),
        curable=False,
    ),
    *(
        Scenario(
            name=f"half as long again as it asked for, {way}",
            category=Category.TIME,
            stage=AttemptStage.EXECUTION,
            pattern=way,
            needs=ScenarioNeeds(seconds=150),
        )
        for way in (NOTIFY, POLL)
    ),
    Scenario(
        name="three times as long as it asked for",
        category=Category.TIME,
        stage=AttemptStage.EXECUTION,
        needs=ScenarioNeeds(seconds=300),
    ),
    Scenario(
        name="it hangs, the first time",
        category=Category.TIME,
        stage=AttemptStage.EXECUTION,
        pattern=WAIT,
        needs=ScenarioNeeds(hangs=1),
    ),
    Scenario(
        name="it hangs, always",
        category=Category.TIME,
        stage=AttemptStage.EXECUTION,
        needs=ScenarioNeeds(hangs=1000),
        curable=False,
    ),
]

ENDS: Final = [
    Scenario(
        name="the output cannot be kept, twice",
        category=Category.OUTPUT,
        stage=AttemptStage.STAGE_OUT,
        troubles=(kept(times=2),),
    ),
    Scenario(
        name="the output store is away for 9 min, poll",
        category=Category.OUTPUT,
        stage=AttemptStage.STAGE_OUT,
        pattern=POLL,
        troubles=(kept(until_s=9 * MINUTE_S),),
    ),
    Scenario(
        name="a declared output is missing",
        category=Category.OUTPUT,
        stage=AttemptStage.STAGE_OUT,
        troubles=(
            FailingAttempts(
                name="missingOutput",
                category=Category.OUTPUT,
                message="it left no file table.csv",
                stage=AttemptStage.STAGE_OUT,
                after_s=60,
            ),
        ),
        curable=False,
    ),
    Scenario(
        name="what it left cannot be cleaned up",
        category=Category.CLEANUP,
        stage=AttemptStage.CLEANUP,
        troubles=(
            FailingAttempts(
                name="notCleaned",
                category=Category.CLEANUP,
                message="its folder could not be made clean: Device or resource busy",
                stage=AttemptStage.CLEANUP,
                after_s=60,
                hosts=ANT,
            ),
        ),
        jobs=3,
    ),
    Scenario(
        name="one after another: memory, a lost pilot, a bad stage-in",
        category=Category.MEMORY,
        stage=AttemptStage.EXECUTION,
        needs=ScenarioNeeds(memory_bytes=3 * GIB),
        troubles=(stage_in(times=1), HostLoss(host="ant", at_s=60), HostLoss(host="bee", at_s=90)),
    ),
]

SCENARIOS: Final[tuple[Scenario, ...]] = (*SUBMISSION, *RESOURCES, *DATA, *OWN, *AMOUNTS, *ENDS)
