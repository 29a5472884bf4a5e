"""Many jobs that wait: each is told of for which a rule holds, and rules that hold for none are asked about one."""

from pathlib import Path

from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.sources import SourceKind, SourceSpec
from mendflow.core.model.values import Value
from mendflow.services.base.source_reader import SourceRequest
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.conftest import RULES
from tests.services.recovery.kit import World, exlet, flow, mend, rule_set

MANY = flow(ForEach(name="each", first=1, last=20, body=JobActivity(name="a", command="true")))
TELL = exlet("tell", mend(Primitive.NOTIFY, message="it waits"))


class Asked:
    """A source that remembers for which items rules were asked."""

    def __init__(self) -> None:
        self.times: list[str] = []

    def check(self, kind: SourceKind, address: str, query: str) -> None:
        pass

    async def read(self, request: SourceRequest) -> Value:
        self.times.append(str(request.parameters["item.id"]))
        return 0


async def test_rules_that_hold_for_no_item_of_a_loop_are_asked_about_one(tmp_path: Path) -> None:
    asked = Asked()
    world = World(MemoryStore(), tmp_path, RULES, source_reader=asked)
    await world.server.open()
    source = SourceSpec(name="asked", kind="http", address="https://example.org/{item.id}", cache_ms=0)
    await world.domain.put_rule_source(source, who="ann")
    await world.put(rule_set("f", ExceptionType.UNAVAILABLE, ("sources.asked > 0", "tell"), exlets=[TELL]))
    await world.start(MANY)

    async def looked_at_often() -> bool:
        return len(asked.times) >= 5

    await world.until(looked_at_often)
    await world.server.close()
    assert len(set(asked.times)) == 1


async def test_every_item_for_which_a_rule_holds_is_told_of_once(memory: World) -> None:
    await memory.put(rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able", "tell"), exlets=[TELL]))
    case = await memory.start(MANY)

    async def all_over() -> bool:
        found = await memory.decisions(case)
        return len(found) >= 20 and all(each.state == "done" for each in found)

    await memory.until(all_over)
    assert len({each.item for each in await memory.decisions(case)}) == len(await memory.decisions(case)) == 20
