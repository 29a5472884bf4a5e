"""What an assign puts through a style sheet is made elsewhere, and the case goes on with it, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from mendflow.core.engine.messages import Cancel
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.principals import EVERYTHING
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_value
from mendflow.formats.bpel import load_bpel
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.messaging.message_router import MessageReply
from mendflow.services.messaging.style_sheets import Transformer
from mendflow.services.runtime.server import Server
from mendflow.services.runtime.settings import ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.formats.bpel.documents import put, sequence
from tests.patience import PATIENCE_S

SHEET = """<xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:o="urn:orders" version="1.0">
<xsl:param name="word"/><xsl:template match="/"><o:receipt><xsl:value-of select="concat($word, ' ', o:order/o:number)"/>
</o:receipt></xsl:template></xsl:stylesheet>"""
ORDER: dict[str, Value] = {"order": element_value('<o:order xmlns:o="urn:orders"><o:number>7</o:number></o:order>')}


def flow(folder: Path, sheet: str = "receipt.xsl") -> Flow:
    """A process that makes a receipt of an order."""
    made = f"bpel:doXslTransform('{sheet}', $order.order, 'word', 'number')"
    step = f'<assign><copy><from>{made}</from><to variable="receipt" part="receipt"/></copy></assign>'
    return load_bpel(put(folder, sequence(step), receipt_xsl=SHEET))


def server(folder: Path, transformer: Transformer | None = None) -> Server:
    file_store = FolderFileStore(folder / "files")
    file_store.open()
    rules = ServerSettings(files_roots=None)
    return Server(
        store=MemoryStore(),
        file_store=file_store,
        clock=SystemClock(),
        settings=rules,
        version="test",
        transformer=transformer,
    )


async def bought(server: Server, flow: Flow) -> MessageReply:
    await server.open()
    await Domain(server).deploy(flow)
    posted = await server.runtime.message_router.post(
        flow.name, "buyer.buy", ORDER, id="one", who="ada", sight=EVERYTHING
    )
    return await answered(server, posted.id)


async def answered(server: Server, id: str) -> MessageReply:
    async with asyncio.timeout(PATIENCE_S):
        return await server.runtime.message_router.answer(id)


async def test_an_assign_goes_on_with_what_a_style_sheet_made(tmp_path: Path) -> None:  # FM-6
    made = server(tmp_path)
    answer = await bought(made, flow(tmp_path))
    assert answer.value == {"receipt": element_value('<o:receipt xmlns:o="urn:orders">number 7</o:receipt>')}
    assert made.counts.transforms.flat() == {"made": 1}
    await made.close()


async def test_a_style_sheet_that_is_not_there_is_a_fault_of_the_flow(tmp_path: Path) -> None:
    made = server(tmp_path)
    answer = await bought(made, flow(tmp_path, "nothing.xsl"))
    assert answer.fault is not None and answer.fault.name == "xsltStylesheetNotFound"
    await made.close()


class Slow:
    """Never comes to an end the first time."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun = asyncio.Event()
        self.cut_off = asyncio.Event()

    async def transform(
        self, sheets: Mapping[str, str], sheet: str, source: str, params: Sequence[tuple[str, Value]] = ()
    ) -> Value | Fault:
        self.asked += 1
        self.begun.set()
        if self.asked == 1:
            try:
                await asyncio.Event().wait()
            finally:
                self.cut_off.set()
        return element_value('<o:receipt xmlns:o="urn:orders">late</o:receipt>')


async def test_a_transformation_that_a_crash_cut_off_is_made_again(
    tmp_path: Path, restart: Callable[[Server], Awaitable[None]]
) -> None:
    slow = Slow()
    made, process = server(tmp_path, slow), flow(tmp_path)
    await made.open()
    await Domain(made).deploy(process)
    posted = await made.runtime.message_router.post(
        process.name, "buyer.buy", ORDER, id="one", who="ada", sight=EVERYTHING
    )
    await asyncio.wait_for(slow.begun.wait(), PATIENCE_S)
    await restart(made)
    answer = await answered(made, posted.id)
    assert answer.value == {"receipt": element_value('<o:receipt xmlns:o="urn:orders">late</o:receipt>')}
    assert slow.asked == 2
    await made.close()


async def test_a_transformation_ends_with_the_case_that_asked_for_it(tmp_path: Path) -> None:
    slow = Slow()
    made, process = server(tmp_path, slow), flow(tmp_path)
    await made.open()
    domain = Domain(made)
    await domain.deploy(process)
    await made.runtime.message_router.post(process.name, "buyer.buy", ORDER, id="one", who="ada", sight=EVERYTHING)
    await asyncio.wait_for(slow.begun.wait(), PATIENCE_S)
    [case] = await domain.cases(flow=process.name)
    await made.runtime.manager.command(case.id, Cancel(reason="enough"))
    await asyncio.wait_for(slow.cut_off.wait(), PATIENCE_S)
    await made.close()
