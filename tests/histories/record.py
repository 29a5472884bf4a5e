"""Record the histories that are not there yet: `python -m tests.histories.record`.

One that is there is never written again: it is what an earlier version wrote, and stands for the journals on people's
disks. To guard something new, add a story here."""

from collections.abc import Callable
from random import Random

import msgspec

from mendflow.core.engine.messages import Event, RestartItem, SubmitJob
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Assign,
    Catch,
    Compensate,
    Flow,
    ForEach,
    Input,
    Invoke,
    JobActivity,
    OnAlarm,
    Pick,
    Rethrow,
    Scope,
    Throw,
    Wait,
)
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.xml import PartCopy, ScopeDeclarations, XmlMessage, XmlTarget, XmlType
from mendflow.formats.yaml import load_flow
from mendflow.formats.yaml.exlets import read_exlet
from tests.core.engine.random_flows import random_flow
from tests.core.engine.world import Asking, Play, failed, file
from tests.core.engine.xml import papers
from tests.core.engine.xml.conversations import (
    QUESTION,
    deep,
    on_message,
    process,
    put,
    receive,
    reply,
    said,
    sequence,
    step,
)
from tests.histories.history import FOLDER, SUFFIX, write
from tests.property.test_engine_laws import Chaos
from tests.property.test_steering_laws import Steered
from tests.shape.source import ROOT

MANY = 5_000
STEERED = (5, 133, 188, 375)
EXLET = """\
- suspend: case
- compensate: [change-venue, {call: refund, name: pay, with: {seats: "${{ case.data.seats }}"}}]
  write: all
- if: job.memory_bytes > 100
  re-submit:
  memory: ${{ job.memory_bytes * 2 }}
- continue: case
"""


def night() -> list[Event]:
    """The example, with three stars, all going well."""

    def answer(order: Asking) -> Outcome:
        assert isinstance(order, SubmitJob)
        outputs = {"offset": "7", "brightness": f"{order.serial:03}", "brightest": "9"}
        return Outcome(outputs=outputs, files={name: file(name) for name in order.spec.files}, exit_code=0)

    return Play(_example("night"), {"stars": 3}).run_out(answer).journal


def approval() -> list[Event]:
    """A person says no."""
    play = Play(_example("approval"))
    play.done("draft", outputs={"words": "6"})
    play.fail("approve", "rejected")
    return play.run_out().journal


def too_late() -> list[Event]:
    """Nobody answers in time."""
    play = Play(_example("approval"))
    return play.done("draft", outputs={"words": "6"}).ring().run_out().journal


def crowd() -> list[Event]:
    """More turns than one event begins: the rest follows bit by bit. The case is left in the middle."""
    body = JobActivity(name="one", command="echo ${{ item }}")
    each = ForEach(name="each", first=1, last=Expr("int(inputs.many)"), body=body, on_fault="finish")
    flow = Flow(name=FlowName("crowd"), body=each, inputs={"many": Input(type="number", required=True)})
    play = Play(flow, {"many": MANY})
    while going_on := play.case.continuation:
        play.proceed(going_on)
    for number, serial in enumerate([*play.out][:40]):
        play.finish(serial, failed() if number % 7 == 3 else Outcome(outputs={"n": number}))
    return play.journal


def talks() -> list[Event]:
    """A process in BPEL that has several conversations at once, follows one, and ends by violating it."""
    inner = sequence("h", step("look"), reply("told", exchange="inner"))
    declared = ScopeDeclarations(types={"question": XmlType(message=QUESTION)}, exchanges=("inner",))
    handler = on_message("ask", inner, declared=declared, exchange="inner", talk="no")
    pick = Pick(
        name="pick",
        messages=(on_message("tellDeep", step("deep"), talk="no"),),
        alarms=(OnAlarm(duration=5_000, body=step("late")),),
    )
    wrong = Assign(name="wrong", xml=(put("answer", "id", "$question.id + 1"),))
    caught = Scope(
        name="caught",
        body=sequence("t", receive("again", "begin", talk="join"), wrong, reply("other", "begin", talk="no")),
        catches=(Catch(fault="correlationViolation", body=reply("sorry", "begin")),),
    )
    start = receive("start", "tell", creates=True, talk="yes")
    play = Play(process(sequence("s", start, pick, caught), scope=Scope(name="x", body=step("x"), messages=(handler,))))
    play.send("link.tell", said(1)).send("link.ask", said(1, "one"), id="one").send("link.ask", said(2), id="other")
    play.send("link.tellDeep", deep(2)).send("link.ask", said(1, "two"), id="two").done("look[1]")
    play.ring().done("late").send("link.begin", said(1), id="last").done("look[0]")
    return play.journal


def paperwork() -> list[Event]:
    """A process in BPEL that copies about, asks a partner in iterations of which two suffice, waits for a style sheet,
    throws what it holds, undoes what it did, and writes down what it caught."""
    asks = Invoke(
        name="ask",
        partner="partner",
        operation="count",
        sends=XmlMessage(partner_link="partner", operation="count", variable="ordered"),
        gets=XmlMessage(partner_link="partner", operation="count", parts=(PartCopy(part="count", variable="number"),)),
    )
    turn = Scope(name="turn", body=asks, compensation=papers.assign(papers.copy("$number - 1", "$number"), name="less"))
    loop = ForEach(
        name="loop",
        first=papers.xpath("1"),
        last=papers.xpath("count($order/o:item) + 1"),
        variable="i",
        min_ended=papers.xpath("2"),
        body=turn,
    )
    copies = (
        papers.copy("$order", XmlTarget(variable="ordered", part="order")),
        papers.copy("$order/o:item[2]", "$ordered.order/o:note"),
        papers.copy("bpel:doXslTransform('flip.xsl', $ordered.order)", "$other"),
    )
    steps = (papers.assign(*copies), loop, Throw(name="throw", fault="{urn:o}oops", variable="ordered"))
    undo = (
        Compensate(name="undo"),
        papers.assign(papers.copy("concat($f/@id, ':', $number)", "$text"), name="note"),
        Wait(name="rest", duration=papers.xpath("'PT1M'")),
    )
    holds = XmlType(element="{urn:o}order")
    caught = Catch(body=sequence("handler", *undo), fault="{urn:o}oops", variable="f", holds=holds)
    scope = Scope(name="scope", body=sequence("steps", *steps), catches=(caught,))
    play = Play(papers.process(scope, order=papers.order(), number=0))
    [sheet] = play.case.index.serials
    play.finish(sheet, Outcome(outputs={"result": papers.order("<o:note>made</o:note>")}))
    for turn_number, answer in (("1", 5), ("0", 6)):
        play.finish(play.serial(f"ask[{turn_number}]"), Outcome(outputs={"count": papers.count(answer)}))
    return play.ring().journal


def restaged() -> list[Event]:
    """A job is restarted, and its files do not come the second time: what handles that, and the case, say how."""
    fault = Fault(name="stagingFailed", category=Category.DATA, message="given.txt is not there")
    reads = JobActivity(name="a", command="true", inputs={"in.txt": "given.txt"})
    says = JobActivity(name="say", command="echo ${{ fault.message }}")
    caught = Scope(name="s", body=reads, catches=(Catch(body=sequence("h", says, Rethrow(name="again"))),))
    play = Play(Flow(name=FlowName("restaged"), body=caught))
    play.finish(play.serial("a"), Outcome(files={"in.txt": file("given.txt")}))
    play.do(RestartItem(item=ItemId("a")))
    play.finish(play.serial("a"), Outcome(fault=fault))
    return play.done("say").journal


def _example(name: str) -> Flow:
    """An example without the folder that it was read from, which differs from machine to machine."""
    return msgspec.structs.replace(load_flow(ROOT / "examples" / f"{name}.yaml"), folder="")


def chaos(seed: int) -> Callable[[], list[Event]]:
    """A random flow in a random world that interferes."""

    def lived() -> list[Event]:
        random = Random(seed)
        world = Chaos(random_flow(random), random)
        world.live(interference=60)
        return world.journal

    return lived


def steered(seed: int) -> Callable[[], list[Event]]:
    """A random flow that exlets steer, which also try to do everything twice."""

    def lived() -> list[Event]:
        random = Random(seed)
        world = Steered(random_flow(random), random, remember=("*",))
        world.live(interference=60)
        return world.journal

    return lived


def mended() -> list[Event]:
    """An exlet, from its first primitive to its last."""
    exlet = msgspec.structs.replace(read_exlet(EXLET, "mend.yaml"), folder="")
    context = {"case": {"data": {"seats": 80}}, "job": {"memory_bytes": 500}}
    return Play(exlet, {"context": context}).run_out(lambda order: Outcome(outputs={"seats": 40})).journal


STORIES: dict[str, Callable[[], list[Event]]] = {
    "night": night,
    "approval": approval,
    "too-late": too_late,
    "crowd": crowd,
    **{f"chaos-{seed}": chaos(seed) for seed in (3, 11, 12, 15, 20, 27)},
    **{f"steered-{seed}": steered(seed) for seed in STEERED},
    "mended": mended,
    "talks": talks,
    "paperwork": paperwork,
    "restaged": restaged,
}


def main() -> None:
    for name, story in STORIES.items():
        path = FOLDER / f"{name}{SUFFIX}"
        if not path.exists():
            write(path, story())
            print(f"recorded {path.name}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
