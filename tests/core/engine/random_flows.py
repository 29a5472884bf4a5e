"""Random flows: every kind of activity, nested a few deep, with links wherever BPEL allows them."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    ActivityNode,
    Assign,
    Branch,
    Call,
    Catch,
    Choose,
    Compensate,
    Copy,
    Empty,
    Exit,
    Flow,
    ForEach,
    Invoke,
    JobActivity,
    LinkSource,
    OnAlarm,
    OnMessage,
    Parallel,
    Pick,
    Receive,
    Rethrow,
    Scope,
    Sequence,
    Stage,
    Throw,
    Until,
    UserTask,
    Wait,
    While,
)
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Submission

FAULTS = ("x", "y", "z")


class Maker:
    """Makes one flow. `handler` tells what may stand where: compensate and rethrow need one around them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0
        self.left = 60

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def chance(self, odds: float) -> bool:
        return self.random.random() < odds

    def flow(self) -> Flow:
        """Mostly the parts are caught one by one, so that a fault in one is not the end of the others."""
        parts = [self.random.choice(self.inner())(3, "") for _ in range(self.random.randint(1, 4))]
        for place, part in enumerate(parts):
            if self.chance(0.7):
                catch = Catch(body=self.activity(1, "catch"))
                parts[place] = Scope(name=self.name("part"), body=part, catches=(catch,))
        return Flow(name=FlowName("random"), body=Sequence(name="all", body=tuple(parts)), outputs={"done": True})

    def inner(self) -> list[Callable[[int, str], Activity]]:
        simple = [self.sequence, self.parallel, self.parallel, self.choose, self.loop, self.for_each]
        return [*simple, self.scope, self.scope, self.scope, self.pick]

    def activity(self, depth: int, handler: str) -> Activity:
        self.left -= 1
        leaves = [self.job, self.job, self.job, self.task, self.stage, self.wait, self.receive, self.assign, self.call]
        leaves += [self.empty, self.invoke, self.throw, self.throw] if self.chance(0.3) else []
        leaves += [self.exit] if self.chance(0.05) else []
        if handler:
            leaves += [self.compensate, self.compensate]
        if handler == "catch":
            leaves += [self.rethrow]
        if depth > 0 and self.left > 0 and self.chance(0.75):
            return self.random.choice(self.inner())(depth - 1, handler)
        return self.random.choice(leaves)()

    def several(self, depth: int, handler: str) -> tuple[Activity, ...]:
        return tuple(self.activity(depth, handler) for _ in range(self.random.choice((1, 2, 2, 3, 4))))

    def job(self) -> Activity:
        given = {"in": "a/path"} if self.chance(0.2) else {}
        submission = Submission.FORGET if self.chance(0.1) else Submission.NOTIFY
        when = Expr("1 > 2") if self.chance(0.1) else None
        return JobActivity(name=self.name("job"), command="run", inputs=given, submission=submission, when=when)

    def task(self) -> Activity:
        return UserTask(name=self.name("task"), role="boss", deadline_ms=500 if self.chance(0.5) else 0)

    def stage(self) -> Activity:
        return Stage(name=self.name("stage"), files={"f": "some/file"})

    def wait(self) -> Activity:
        return Wait(name=self.name("wait"), duration=self.random.randint(0, 100))

    def receive(self) -> Activity:
        return Receive(
            name=self.name("receive"), channel=self.random.choice("ab"), correlation=self.random.randint(1, 20)
        )

    def assign(self) -> Activity:
        broken = "${{ nobody.knows }}" if self.chance(0.1) else 1
        return Assign(name=self.name("assign"), copies=(Copy("v", 1), Copy("w", broken)))

    def throw(self) -> Activity:
        return Throw(name=self.name("throw"), fault=self.random.choice(FAULTS), data={"a": 1})

    def empty(self) -> Activity:
        return Empty(name=self.name("empty"))

    def call(self) -> Activity:
        return Call(name=self.name("call"), flow="other", inputs={"a": 1})

    def invoke(self) -> Activity:
        return Invoke(name=self.name("invoke"), partner="p", operation="o", variable="v" if self.chance(0.5) else "")

    def exit(self) -> Activity:
        return Exit(name=self.name("exit"))

    def compensate(self) -> Activity:
        return Compensate(name=self.name("compensate"))

    def rethrow(self) -> Activity:
        return Rethrow(name=self.name("rethrow"))

    def sequence(self, depth: int, handler: str) -> Activity:
        return Sequence(name=self.name("sequence"), body=self.several(depth, handler))

    def parallel(self, depth: int, handler: str) -> Activity:
        branches = list(self.several(depth, handler))
        links: list[str] = []
        for _ in range(self.random.randint(0, 3)):
            if len(branches) < 2:
                break
            first, then = sorted(self.random.sample(range(len(branches)), 2))
            link = self.name("link")
            links.append(link)
            source = LinkSource(link, self.random.choice(self.transitions()))
            branches[first] = self.add_source(branches[first], source)
            branches[then] = self.add_target(branches[then], link)
        on_fault = "finish" if self.chance(0.3) else "stop"
        return Parallel(name=self.name("parallel"), branches=tuple(branches), links=tuple(links), on_fault=on_fault)  # type: ignore[arg-type]  # one of the two words

    def transitions(self) -> tuple[Expr | None, ...]:
        return (None, Expr("1 < 2"), Expr("1 > 2"), *((Expr("nobody.knows"),) if self.chance(0.1) else ()))

    def add_source(self, activity: Activity, source: LinkSource) -> Activity:
        """On the activity itself, or on one inside it that is not in a loop."""
        deeper = self.chance(0.5)
        if deeper and isinstance(activity, Sequence):
            return self.replace_one(activity, "body", source)
        if deeper and isinstance(activity, Parallel):
            return self.replace_one(activity, "branches", source)
        if deeper and isinstance(activity, Scope):
            if activity.catches and self.chance(0.5):
                catch = activity.catches[0]
                catch = msgspec.structs.replace(catch, body=self.add_source(catch.body, source))
                return msgspec.structs.replace(activity, catches=(catch, *activity.catches[1:]))
            return msgspec.structs.replace(activity, body=self.add_source(activity.body, source))
        if deeper and isinstance(activity, Choose):
            branch = activity.branches[0]
            branch = msgspec.structs.replace(branch, body=self.add_source(branch.body, source))
            return msgspec.structs.replace(activity, branches=(branch, *activity.branches[1:]))
        assert isinstance(activity, ActivityNode)
        return msgspec.structs.replace(activity, sources=(*activity.sources, source))

    def replace_one(self, activity: Activity, field: str, source: LinkSource) -> Activity:
        parts = list(getattr(activity, field))
        at = self.random.randrange(len(parts))
        parts[at] = self.add_source(parts[at], source)
        return msgspec.structs.replace(activity, **{field: tuple(parts)})

    def add_target(self, activity: Activity, link: str) -> Activity:
        """On the activity itself, or inside it, but never inside an isolated scope, which would wait with its hold on
        all the others."""
        if self.chance(0.4):
            if isinstance(activity, Sequence):
                at = self.random.randrange(len(activity.body))
                body = [*activity.body]
                body[at] = self.add_target(body[at], link)
                return msgspec.structs.replace(activity, body=tuple(body))
            if isinstance(activity, Scope) and not activity.isolated:
                return msgspec.structs.replace(activity, body=self.add_target(activity.body, link))
        assert isinstance(activity, ActivityNode)
        join = self.random.choice(("any", "all", Expr(f"links.{link}"), Expr(f"!links.{link}")))
        return msgspec.structs.replace(
            activity,
            targets=(*activity.targets, link),
            join=join if not activity.targets else activity.join,
            suppress_join_failure=self.chance(0.9),
        )

    def choose(self, depth: int, handler: str) -> Activity:
        conditions = ("1 < 2", "1 > 2", "nobody.knows") if self.chance(0.1) else ("1 < 2", "1 > 2")
        branches = tuple(Branch(Expr(self.random.choice(conditions)), body) for body in self.several(depth, handler))
        otherwise = self.activity(depth, handler) if self.chance(0.5) else None
        return Choose(name=self.name("choose"), branches=branches, otherwise=otherwise, many=self.chance(0.3))

    def loop(self, depth: int, handler: str) -> Activity:
        counter = self.name("n")
        count = Assign(name=self.name("count"), copies=(Copy(counter, f"${{{{ {counter} + 1 }}}}"),))
        body = Sequence(name=self.name("turn"), body=(count, self.activity(depth, handler)))
        turns = self.random.randint(0, 3)
        loop: Activity
        if self.chance(0.5):
            loop = While(name=self.name("while"), condition=Expr(f"{counter} < {turns}"), body=body)
        else:
            loop = Until(name=self.name("until"), condition=Expr(f"{counter} >= {turns}"), body=body)
        return Scope(name=self.name("counted"), variables={counter: 0}, body=loop)

    def for_each(self, depth: int, handler: str) -> Activity:
        turns = self.random.randint(0, 4)
        return ForEach(
            name=self.name("each"),
            items=list(range(turns)) if self.chance(0.7) else "${{ [1, 2, 3] }}",
            body=self.activity(depth, handler),
            parallel=self.chance(0.7),
            max_parallel=self.random.randint(0, 2),
            **self.completion_condition(),
            collect=Expr("item") if self.chance(0.5) else None,
            on_fault="finish" if self.chance(0.3) else "stop",
        )

    def completion_condition(self) -> dict[str, Any]:
        """At most one of the two that a loop may have. Chance is asked the same number of times in every case."""
        wanted = self.random.randint(0, 3) if self.chance(0.3) else None
        return {"min_success" if self.chance(0.5) else "min_ended": wanted}

    def scope(self, depth: int, handler: str) -> Activity:
        catches = []
        for _ in range(self.random.randint(0, 2)):
            fault = self.random.choice((*FAULTS, None))
            catches.append(Catch(body=self.activity(depth - 1, "catch"), fault=fault))
        messages = (OnMessage(channel="ev", body=self.activity(depth - 1, "")),) if self.chance(0.2) else ()
        every = 50 if self.chance(0.5) else None
        alarms = (OnAlarm(body=self.activity(depth - 1, ""), duration=70, every=every),) if self.chance(0.2) else ()
        return Scope(
            name=self.name("scope"),
            body=self.activity(depth, handler),
            variables={"v": 0} if self.chance(0.5) else {},
            catches=tuple(catches),
            compensation=self.activity(depth - 1, "compensation") if self.chance(0.5) else None,
            termination=self.activity(depth - 1, "termination") if self.chance(0.2) else None,
            messages=messages,
            alarms=alarms,
            isolated=self.chance(0.15),
            exit_on_standard_fault=self.chance(0.05),
        )

    def pick(self, depth: int, handler: str) -> Activity:
        messages = tuple(
            OnMessage(channel="p", correlation=self.random.randint(1, 20), body=body)
            for body in self.several(depth, handler)
        )
        alarms = (OnAlarm(body=self.activity(depth, handler), duration=30),) if self.chance(0.5) else ()
        return Pick(name=self.name("pick"), messages=messages, alarms=alarms)


def random_flow(random: Random) -> Flow:
    return Maker(random).flow()
