"""Many jobs that wait: each is told of for which a rule holds, and rules that hold for none are asked about one."""

from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.values import Value
from tests.services.recovery.kit import World, exlet, flow, mend, rule_set

MANY = flow(ForEach(name="each", first=1, last=20, body=JobActivity(name="a", command="true")))
TELL = exlet("tell", mend(Primitive.NOTIFY, message="it waits"))


class Asked:
    """A source of facts that remembers for which items rules were asked."""

    def __init__(self) -> None:
        self.times: list[str] = []

    async def facts(self, event: ExceptionEvent) -> Value:
        self.times.append(str(event.item))
        return None


async def test_rules_that_hold_for_no_item_of_a_loop_are_asked_about_one(memory: World) -> None:
    asked = Asked()
    memory.runtime.exceptions.contexts.register("asked", asked)
    await memory.put(rule_set("f", ExceptionType.UNAVAILABLE, ("job.unable_ms > 3600000", "tell"), exlets=[TELL]))
    await memory.start(MANY)

    async def looked_at_often() -> bool:
        return len(asked.times) >= 5

    await memory.until(looked_at_often)
    assert len(set(asked.times)) == 1


async def test_every_item_for_which_a_rule_holds_is_told_of_once(memory: World) -> None:
    await memory.put(rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able", "tell"), exlets=[TELL]))
    case = await memory.start(MANY)

    async def all_over() -> bool:
        found = await memory.decisions(case)
        return len(found) >= 20 and all(each.state == "done" for each in found)

    await memory.until(all_over)
    assert len({each.item for each in await memory.decisions(case)}) == len(await memory.decisions(case)) == 20
