"""The port of the proxy: calls on somebody's behalf, each a case of one invoke."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.soap import SERVICE_REF
from mendflow.core.soap.envelope import element_of, read_envelope, write_envelope, write_fault
from mendflow.core.xml.reader import read
from mendflow.core.xml.tree import Element
from mendflow.formats.shipped import default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.messaging.contracts import OWN_ONLY, CallFailed, PartnerResponse
from mendflow.services.messaging.ports.messages import PortFault, child, text_in
from mendflow.services.messaging.ports.proxy_messages import PROXY
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S

CALL = """<call xmlns="urn:mendflow:proxy:1" {more}>
<activity>AskShop</activity><address>http://shop.example/x<r xmlns="urn:r"><Address>{address}</Address></r></address>
<action>urn:ask</action><portType>{{urn:shop}}Shop</portType><operation>ask</operation>{style}
{answer}<fault name="soldOut" part="why" element="{{urn:shop}}soldOut"/>
<message>{parts}</message></call>"""
ANSWER = '<answer name="out" element="{urn:shop}got"/>'
PARTS = '<part name="in"><s:want xmlns:s="urn:shop">3</s:want></part>'


def call(*, address: str = "", more: str = "", parts: str = PARTS, answer: str = ANSWER, style: str = "") -> str:
    return CALL.format(address=address, more=more, parts=parts, answer=answer, style=style)


class Shop:
    """A partner that answers what it is told to, one after the other, and the last for ever."""

    def __init__(self) -> None:
        self.answers: list[PartnerResponse | Fault] = []
        self.heard: list[tuple[str, str, Element]] = []
        self.ids: list[str] = []
        self.awake = asyncio.Event()
        self.awake.set()

    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        assert assigned, "whom the proxy calls was said by a message"
        self.ids.append(read_envelope(body).message_id)
        self.heard.append((address, action, read(element_of(read_envelope(body).body[0]))))
        await self.awake.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Fault):
            raise CallFailed(answer)
        return answer


def told(element: str) -> PartnerResponse:
    return PartnerResponse(200, write_envelope([element]))


AWAY = Fault(name="partnerUnreachable", category=Category.NETWORK, message="nobody is there")
GOT = told('<got xmlns="urn:shop">three</got>')


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
async def server(tmp_path: Path, shop: Shop) -> AsyncIterator[Server]:
    file_store = FolderFileStore(tmp_path / "files")
    file_store.open()
    rules = ServerSettings(files_roots=None, levels_ms=(50, 50, 50))
    store, clock = MemoryStore(), SystemClock()
    server = Server(
        store=store,
        file_store=file_store,
        clock=clock,
        settings=rules,
        version="test",
        shipped=default_rules(),
        caller=shop,
    )
    await server.open()
    yield server
    await server.close()


async def ask(server: Server, text: str, id: str = "") -> Element:
    async with asyncio.timeout(PATIENCE_S):
        answer = await server.runtime.ports["proxy"].handle_request(text, who="me", message_id=id, reach=OWN_ONLY)
    assert answer is not None
    return read(answer)


def part_of(element: Element) -> Element:
    message = child(element, "message")
    assert message is not None
    part = child(message, "part")
    assert part is not None
    return part


async def test_a_call_is_made_and_answered_with_what_the_partner_answers(
    server: Server, shop: Shop
) -> None:  # FM-9 FM-10
    shop.answers = [GOT]
    answer = await ask(server, call())
    [inner] = part_of(answer).elements()
    assert (inner.name, inner.string(), part_of(answer).get("name")) == ("{urn:shop}got", "three", "out")
    [(address, action, heard)] = shop.heard
    assert (address, action, heard.name, heard.string()) == ("http://shop.example/x", "urn:ask", "{urn:shop}want", "3")


async def test_a_call_is_a_case_that_shows_its_activity_and_its_message(
    server: Server, domain: Domain, shop: Shop
) -> None:
    shop.answers = [GOT]
    case = await domain.case(text_in(await ask(server, call()), "callId"))
    assert (case.flow, case.status, list(case.inputs["message"])) == ("partner-call", "completed", ["in"])


async def test_an_endpoint_reference_counts_for_more_than_the_address_beside_it(server: Server, shop: Shop) -> None:
    shop.answers = [GOT]
    await ask(server, call(address="http://other.example/"))
    assert shop.heard[0][0] == "http://other.example/"


async def test_a_reference_that_holds_bare_text_counts_for_more_than_the_address_beside_it(
    server: Server, shop: Shop
) -> None:  # FM-10
    shop.answers = [GOT]
    reference = f'<sref:service-ref xmlns:sref="{SERVICE_REF}">http://other.example/</sref:service-ref>'
    await ask(server, call().replace('<r xmlns="urn:r"><Address></Address></r>', reference))
    assert shop.heard[0][0] == "http://other.example/"


async def test_rpc_calls_are_wrapped_and_typed_parts_stand_in_values(server: Server, shop: Shop) -> None:
    shop.answers = [told('<n:askResponse xmlns:n="urn:w"><count>4</count></n:askResponse>')]
    style = "<style>rpc</style><namespace>urn:w</namespace>"
    parts = '<part name="n"><value>7</value></part><part name="c"><value unit="kg"><a xmlns="">x</a></value></part>'
    count = '<answer name="count" type="{http://www.w3.org/2001/XMLSchema}int"/>'
    answer = await ask(server, call(style=style, parts=parts, answer=count))
    [value] = part_of(answer).elements()
    assert (value.name, value.string()) == (f"{{{PROXY}}}value", "4")
    [(_, _, heard)] = shop.heard
    first, second = heard.elements()
    assert (heard.name, first.name, first.string()) == ("{urn:w}ask", "n", "7")
    assert (second.name, second.get("unit"), [each.name for each in second.elements()]) == ("c", "kg", ["a"])


async def test_what_passes_is_mended_and_whoever_called_hears_only_the_answer(
    server: Server, domain: Domain, shop: Shop
) -> None:  # FM-8 FM-10 EX-3
    shop.answers = [AWAY, AWAY, GOT]
    answer = await ask(server, call())
    assert part_of(answer).string() == "three" and len(shop.heard) == 3
    assert len(set(shop.ids)) == 1, "the partner may have taken what it did not answer"
    case = await domain.case(text_in(answer, "callId"))
    assert case.status == "completed"
    assert [(count.kind, count.done, count.mended) for count in case.counts] == [("invoke", 1, 1)]


async def test_what_does_not_pass_is_told_under_its_own_name_after_all_levels(server: Server, shop: Shop) -> None:
    shop.answers = [AWAY]
    with pytest.raises(PortFault) as failed:
        await ask(server, call())
    assert failed.value.partner is not None and failed.value.partner.name == "partnerUnreachable"
    assert len(shop.heard) == 4, "once, and once after each level"


async def test_a_declared_fault_comes_as_the_fault_of_the_proxy_and_is_not_tried_again(
    server: Server, shop: Shop
) -> None:  # FM-9
    shop.answers = [PartnerResponse(500, write_fault("none left", ['<s:soldOut xmlns:s="urn:shop">all</s:soldOut>']))]
    with pytest.raises(PortFault) as failed:
        await ask(server, call())
    element = read(failed.value.element)
    assert failed.value.name == f"{{{PROXY}}}failed" and element.local == "failed"
    assert text_in(element, "name") == "{urn:shop}soldOut"
    part = child(element, "part")
    assert part is not None and [(each.name, each.string()) for each in part.elements()] == [
        ("{urn:shop}soldOut", "all")
    ]
    assert len(shop.heard) == 1


async def test_an_undeclared_fault_passes_as_it_came(server: Server, shop: Shop) -> None:
    shop.answers = [PartnerResponse(500, write_fault("bang", ['<bang xmlns="urn:else"/>']))]
    with pytest.raises(PortFault) as failed:
        await ask(server, call())
    assert failed.value.partner is not None and failed.value.partner.name == "{urn:else}bang"


async def test_a_one_way_call_answers_when_the_partner_has_taken_it(server: Server, shop: Shop) -> None:
    shop.answers = [AWAY, PartnerResponse(202, b"")]
    answer = await ask(server, call(more='oneWay="true"', answer=""))
    message = child(answer, "message")
    assert message is not None and list(message.elements()) == [] and len(shop.heard) == 2


async def test_a_posted_call_is_made_though_nobody_waits(server: Server, shop: Shop) -> None:
    shop.answers = [PartnerResponse(202, b"")]
    text = call(answer="").replace("<call", "<post").replace("</call", "</post")
    assert await server.runtime.ports["proxy"].handle_request(text, who="me", reach=OWN_ONLY) is None
    async with asyncio.timeout(PATIENCE_S):
        while not shop.heard:
            await asyncio.sleep(0.01)


async def test_a_repeated_call_is_the_same_and_is_found_again_after_a_crash(
    server: Server, shop: Shop, restart: Callable[[Server], Awaitable[None]]
) -> None:
    shop.answers = [GOT]
    first = text_in(await ask(server, call(), "m-1"), "callId")
    await restart(server)
    assert text_in(await ask(server, call(), "m-1"), "callId") == first
    assert len(shop.heard) == 1


def begun(key: str) -> str:
    """The same call, as one that is begun under a key."""
    return (
        call()
        .replace("<call", "<begin")
        .replace("</call", "</begin")
        .replace("<activity>", f"<key>{key}</key><activity>")
    )


def about(operation: str, element: Element) -> str:
    return f'<{operation} xmlns="{PROXY}"><callId>{text_in(element, "callId")}</callId></{operation}>'


async def drawn_key(server: Server) -> str:
    return text_in(await ask(server, f'<open xmlns="{PROXY}"/>'), "key")


async def test_a_slow_partner_is_called_once_however_often_the_call_is_begun_under_its_key(
    server: Server, shop: Shop, restart: Callable[[Server], Awaitable[None]]
) -> None:  # FM-9 FM-10
    shop.awake.clear()
    shop.answers = [GOT]
    key = await drawn_key(server)
    told_ids = {text_in(await ask(server, begun(key), f"urn:uuid:{turn}"), "callId") for turn in range(4)}
    assert len(told_ids) == 1 and len(shop.heard) == 1
    progress = await ask(server, begun(key))
    assert (text_in(progress, "over"), text_in(progress, "askAfter")) == ("false", "PT1S")
    shop.awake.set()
    async with asyncio.timeout(PATIENCE_S):
        while text_in(progress := await ask(server, about("ask", progress)), "over") == "false":
            await asyncio.sleep(0.01)
    await restart(server)
    answer = await ask(server, about("result", progress))
    assert part_of(answer).string() == "three" and len(shop.heard) == 1
    assert text_in(await ask(server, begun(key)), "over") == "true"


async def test_a_partner_that_answers_at_once_need_not_be_asked_about(server: Server, shop: Shop) -> None:  # FM-10
    shop.answers = [GOT]
    assert text_in(await ask(server, begun(await drawn_key(server))), "over") == "true"


async def test_every_drawn_key_is_another_call(server: Server, shop: Shop) -> None:  # FM-10
    shop.answers = [GOT]
    for _ in range(2):
        await ask(server, begun(await drawn_key(server)), "urn:the-same-message")
    assert len(shop.heard) == 2


async def test_what_a_begun_call_came_to_is_told_as_a_call_tells_it(server: Server, shop: Shop) -> None:  # FM-9
    shop.answers = [
        PartnerResponse(500, write_fault("none left", ['<s:soldOut xmlns:s="urn:shop">all</s:soldOut>'])),
        PartnerResponse(500, write_fault("bang", ['<bang xmlns="urn:else"/>'])),
    ]
    for name in (f"{{{PROXY}}}failed", "{urn:else}bang"):
        progress = await ask(server, begun(await drawn_key(server)))
        with pytest.raises(PortFault) as failed:
            await ask(server, about("result", progress))
        assert failed.value.name == name


async def test_calls_of_others_and_calls_that_are_not_over_have_no_result(server: Server, shop: Shop) -> None:
    shop.awake.clear()
    shop.answers = [GOT]
    progress = await ask(server, begun(await drawn_key(server)))
    with pytest.raises(PortFault, match="is not over; ask until it is"):
        await ask(server, about("result", progress))
    for operation in ("ask", "result"):
        with pytest.raises(PortFault, match="there is no call"):
            await server.runtime.ports["proxy"].handle_request(
                about(operation, progress), who="another", reach=OWN_ONLY
            )
    with pytest.raises(PortFault, match="<key> is missing"):
        await ask(server, begun(""), "m-1")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<call xmlns="urn:mendflow:proxy:1"/>', "<address> names no address"),
        (call(style="<style>jazz</style>"), "document or rpc"),
        (call(parts='<part name="a"/>'), "holds an element"),
        ("<call/>", "nothing that can be asked"),
    ],
)
async def test_a_call_that_says_too_little_is_refused(server: Server, text: str, why: str) -> None:
    with pytest.raises(PortFault, match=why) as refused:
        await ask(server, text)
    assert refused.value.name == f"{{{PROXY}}}refused"
