"""A stage for processes: messages come and are taken to cases as the mailroom does it, the shop answers, time jumps.

Every case is a world of its own, so the laws of the engine are checked after everything that happens to it, and
everything but what is on disk is lost before each thing that does. Wishes of 5 end in a fault that the shop has not
declared, of 6 in the one that it has; 9 is never answered."""

from pathlib import Path

from mendflow.core.engine.messages import CallPartner, ContinueLater, Deliver, EndCase, SendReply, SetTimer, StartCase
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.xml.listeners import match_kind
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_text, element_value
from mendflow.core.xml.reader import read
from mendflow.formats.bpel import load_bpel
from tests.bpel.documents import DESK, HEARD, SHOP
from tests.core.engine.world import World


def stored(folder: Path, text: str, desk: str = DESK) -> Path:
    """The process in a folder, with the WSDL files that it imports."""
    (folder / "desk.wsdl").write_text(desk)
    (folder / "shop.wsdl").write_text(SHOP)
    path = folder / "play.bpel"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str, desk: str = DESK) -> str:
    """Why a process is not deployed; empty if it would be."""
    try:
        load_bpel(stored(folder, text, desk))
    except BadFlow as error:
        return "\n".join(str(each) for each in error.problems)
    return ""


def content(value: Value) -> str:
    text = element_text(value)
    return str(value) if text is None else read(text).string()


class Stage:
    """`calls` are the wishes and hints that reached the shop, in order."""

    def __init__(self, folder: Path, text: str, *, forgetful: bool = True) -> None:
        self.forgetful = forgetful
        self.flow = load_bpel(stored(folder, text))
        self.plan = compile_flow(self.flow)
        self.cases: list[World] = []
        self.mail: list[Deliver] = []
        self.given: dict[str, World] = {}
        self.calls: list[str] = []
        self.now = 1_700_000_000_000

    # What comes in

    def send(self, operation: str, value: object = 0) -> str:
        """A message comes; all that follows from it without time passing has happened when this returns."""
        name = HEARD[operation]
        id = f"m{len(self.given) + len(self.mail) + 1}"
        element = element_value(f'<{name} xmlns="urn:desk">{value}</{name}>')
        self.mail.append(Deliver(id=id, channel=f"desk.{operation}", value={"in": element}))
        self.settle()
        return id

    def ask(self, value: object = 0) -> str:
        return self.answer(self.send("ask", value))

    def spell(self, value: object = 0) -> str:
        return self.answer(self.send("spell", value))

    def tell(self, value: object = 0) -> str:
        return self.send("tell", value)

    def answer(self, id: str) -> str:
        """What a request was answered, as long as it takes: the text of it, `!fault` or `!fault(data)`, `ended` if its
        case is over without an answer, `waits` if nothing would ever happen."""
        while (found := self._said(id)) == "waits" and self._ring():
            pass
        return found

    def pass_by(self, seconds: float) -> None:
        end = self.now + int(seconds * 1000)
        while self._ring(until=end):
            pass
        self.now = end

    @property
    def statuses(self) -> list[str]:
        return [each.case.status for each in self.cases]

    def _said(self, id: str) -> str:
        world = self.given.get(id)
        for order in world.given if world is not None else ():
            if isinstance(order, SendReply) and order.message == id:
                assert isinstance(order.value, dict)
                [said] = [content(each) for each in order.value.values()]
                return f"!{order.fault.rpartition('}')[2]}({said})" if order.fault else said
            if isinstance(order, EndCase):
                return f"!{order.fault.name.rpartition('}')[2]}" if order.fault is not None else "ended"
        return "waits"

    # What happens

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        while any(self._act(world) for world in self.cases) or any(self._route(each) for each in list(self.mail)):
            pass

    def _act(self, world: World) -> bool:
        if self.forgetful and not world.case.over:
            world.crash(with_snapshot=len(world.journal) % 2 == 0)
        for serial, order in world.out.items():
            if isinstance(order, ContinueLater):
                world.proceed(serial)
            elif isinstance(order, SendReply):
                world.finish(serial, Outcome())
            elif isinstance(order, CallPartner) and (outcome := self._served(order)) is not None:
                world.finish(serial, outcome)
            else:
                continue
            return True
        return False

    def _served(self, order: CallPartner) -> Outcome | None:
        if order.operation != "buy":
            parts = order.value if isinstance(order.value, dict) else {}
            self.calls.append(f"{order.operation}{''.join(content(each) for each in parts.values())}")
            return Outcome()
        assert isinstance(order.value, dict)
        wish = content(order.value["in"])
        if wish == "9":
            return None
        self.calls.append(wish)
        if wish == "5":
            return Outcome(fault=Fault(name="{urn:shop}Oops", category=Category.FLOW, message="oops"))
        if wish == "6":
            why = {"why": element_value('<trouble xmlns="urn:shop">6</trouble>')}
            data: dict[str, Value] = {"type": {"message": "{urn:shop}troubleMessage"}, "value": dict(why)}
            return Outcome(fault=Fault(name="{urn:shop}soldOut", category=Category.FLOW, message="gone", data=data))
        return Outcome(outputs={"out": element_value(f'<goods xmlns="urn:shop">{wish}</goods>')})

    def _route(self, message: Deliver) -> bool:
        """Take a message to the case that it is for, if there is one."""
        live = [each for each in self.cases if not each.case.over]
        verdicts = [(each, match_kind(each.case, message.channel, message.value)) for each in live]
        chosen = next((each for each, verdict in verdicts if verdict == "correlated"), None)
        if chosen is None and message.channel in self.plan.begins:
            chosen = self._begun()
        chosen = chosen or next((each for each, verdict in verdicts if verdict == "plain"), None)
        if chosen is None:
            return False
        self.mail.remove(message)
        self.given[message.id] = chosen
        if not chosen.case.over:
            chosen.do(message)
        return True

    def _begun(self) -> World:
        world = World()
        world.now = self.now
        self.cases.append(world)
        world.do(StartCase(case=CaseId(f"play.{len(self.cases)}"), flow=self.flow))
        return world

    def _ring(self, until: int | None = None) -> bool:
        """Let the timer that is due first go off."""
        timers = [
            (order.at, number, serial)
            for number, world in enumerate(self.cases)
            for serial, order in world.out.items()
            if isinstance(order, SetTimer) and (until is None or order.at <= until)
        ]
        if not timers:
            return False
        at, number, serial = min(timers)
        self.now = max(self.now, at)
        for world in self.cases:
            world.now = self.now
        self.cases[number].fire(serial)
        self.settle()
        return True
