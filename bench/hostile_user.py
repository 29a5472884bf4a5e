"""What a hostile user sends: everything that is expensive, for as long as it may. `bench.hostile` runs it as a process.

It has a token and may write flows, in a project of its own. It takes what the server says of its bounds and goes as
near to them as it can: beyond them a request is refused, which costs little."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp
from msgspec.json import encode

from mendflow.client import Client
from mendflow.core.model.errors import RequestError
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, Input, Wait, While
from mendflow.core.model.ids import FlowName
from mendflow.formats import load

ROOT: Final = Path(__file__).resolve().parent.parent
HELD_CONNECTIONS = 400
SLOW_BODIES = 8
"""With more it would keep its own other requests waiting: so many of one principal are answered at once."""
LOOPS_TOGETHER = 4
PAUSE_S = 0.05
LONG_TEXT = "a" * 1_000_000
EXPENSIVE = (
    'facts.l.filter(a, facts.s.contains("aab")).size() > 0',
    'facts.l.exists(a, facts.s.indexOf("aab") > 0)',
    "facts.l.map(a, facts.l.map(b, a + b)).size() == 0",
    "[facts.l]" + ".map(a, a + a)" * 9 + ".size() == 0",
    "facts.l.exists(a, facts.s.split('').join('') == '')",
    "facts.l.exists(a, facts.s.matches('(a|b)*c'))",
)
LOOP_CONDITION = "!inputs.l.exists(a, inputs.s.contains('aab'))"
"""As much work as an expression may do, and no fault: the loop goes on for ever."""

MESSAGE = (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><sort xmlns="urn:example:words">'
    "<source>{text}</source><sorted>b</sorted><count>c</count></sort></s:Body></s:Envelope>"
)
PROCESS = """<process name="NAME" targetNamespace="urn:example:hostile"
    xmlns="http://docs.oasis-open.org/wsbpel/2.0/process/executable" xmlns:words="urn:example:words"
    xmlns:xsd="http://www.w3.org/2001/XMLSchema">
  <import namespace="urn:example:words" location="words.wsdl" importType="http://schemas.xmlsoap.org/wsdl/"/>
  <partnerLinks><partnerLink name="client" partnerLinkType="words:WordsLink" myRole="sorter"/></partnerLinks>
  <variables>
    <variable name="request" messageType="words:sortRequest"/>
    <variable name="wide" element="words:sort"/>
    <variable name="found" type="xsd:string"/>
  </variables>
  <sequence>
    <receive partnerLink="client" operation="sort" variable="request" createInstance="yes"/>
    <assign><copy><from><literal><words:sort>WIDE</words:sort></literal></from><to variable="wide"/></copy></assign>
    <while><condition>true()</condition>
      <scope>
        <faultHandlers><catchAll><empty/></catchAll></faultHandlers>
        <assign><copy><from>EXPRESSION</from><to variable="found"/></copy></assign>
      </scope>
    </while>
  </sequence>
</process>
"""
PATHS = (
    "count($wide//*[count($wide//*[. = 'x']) = 0])",
    "count($wide//*/following::*[. = 'y'])",
    " or ".join(["translate($request.parameters/words:source, 'ab', 'ba') = 'y'"] * 60),
)

Attack = Callable[[], Awaitable[str]]


def loop_flow() -> Flow:
    """A case that evaluates one expensive expression after the other."""
    loop = While(name="loop", condition=Expr(LOOP_CONDITION), body=Wait(name="again", duration=0))
    return Flow(name=FlowName("hostile-loop"), inputs={"s": Input(type="string"), "l": Input(type="list")}, body=loop)


def path_flows(folder: Path) -> list[Flow]:
    """Processes in BPEL that do the same with XPath."""
    (folder / "words.wsdl").write_text((ROOT / "examples" / "bpel" / "words.wsdl").read_text())
    found = []
    for number, path in enumerate(PATHS):
        text = PROCESS.replace("NAME", f"hostile-{number}").replace("WIDE", "<words:source>z</words:source>" * 400)
        (folder / f"hostile-{number}.bpel").write_text(text.replace("EXPRESSION", path))
        found.append(load(folder / f"hostile-{number}.bpel"))
    return found


def evaluation(condition: str) -> bytes:
    """A request to evaluate one condition on data of the caller's."""
    trees = {"case-pre": {"": {"rules": {"0": {"id": 0, "condition": condition}}, "root": 0}}}
    facts = {"s": LONG_TEXT, "l": [f"x{number}" for number in range(9000)]}
    rules = {"name": "hostile", "trees": trees}
    return encode({"rules": rules, "type": "case-pre", "context": {"facts": facts}, "only": True})


class HostileUser:
    def __init__(self, url: str, token: str, project: str, end: float) -> None:
        self._url, self._token, self._project, self._end = url, token, project, end
        self._flows: list[Flow] = []
        # Made once: this process stands for another machine, and takes as little of this one as it can.
        self._evaluations = [evaluation(each) for each in EXPENSIVE]
        self._loop_case = encode({"flow": "hostile-loop", "inputs": {"s": LONG_TEXT, "l": list(range(9))}})
        self._huge = encode({"flow": "hostile-loop", "inputs": {"s": LONG_TEXT * 8, "l": [[[]]] * 500_000}})
        self.answers = Counter[str]()

    async def attack(self, folder: Path, kinds: Sequence[str]) -> None:
        self._flows = path_flows(folder)
        async with Client(self._url, token=self._token) as client:
            for flow in (loop_flow(), *self._flows):
                await client.deploy(flow, project=self._project)
        headers = {"authorization": f"Bearer {self._token}"}
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as http:
            self._http = http
            chosen = [(attack, count) for name, (attack, count) in self._attacks().items() if name in kinds]
            with suppress(TimeoutError):
                async with asyncio.timeout(self._end - time.monotonic()):
                    await asyncio.gather(*(self._again(attack) for attack, count in chosen for _ in range(count)))

    def _attacks(self) -> dict[str, tuple[Attack, int]]:
        return {
            "previews": (self._preview, 4),
            "loops": (self._loop, 2),
            "paths": (self._path, 2),
            "flood": (self._flood, 20),
            "huge": (self._huge_case, 1),
            "half": (self._half_sent, HELD_CONNECTIONS),
            "slow": (self._slow_body, SLOW_BODIES),
        }

    async def _again(self, attack: Attack) -> None:
        while time.monotonic() < self._end:
            try:
                self.answers[await attack()] += 1
            except (aiohttp.ClientError, OSError, TimeoutError, RequestError) as error:
                self.answers[f"{attack.__name__.strip('_')} {type(error).__name__}"] += 1
                await asyncio.sleep(PAUSE_S)

    async def _post(self, path: str, body: bytes) -> int:
        headers = {"content-type": "application/json"}
        async with self._http.post(f"{self._url}/api/v1{path}", data=body, headers=headers) as response:
            await response.read()
            return response.status

    async def _preview(self) -> str:
        body = self._evaluations[int(time.monotonic() * 10) % len(EXPENSIVE)]
        return f"preview {await self._post('/rule-previews/evaluate', body)}"

    async def _loop(self) -> str:
        """One more case that never ends, and a rest now and then: some are enough, and no more are admitted."""
        status = await self._post("/cases", self._loop_case)
        await asyncio.sleep(5 if status < 300 else 0.5)
        return f"loop {status}"

    async def _path(self) -> str:
        flow = self._flows[int(time.monotonic()) % len(self._flows)]
        body = MESSAGE.format(text=LONG_TEXT[:250_000])
        headers = {"content-type": "text/xml; charset=utf-8", "soapaction": '""'}
        timeout = aiohttp.ClientTimeout(total=5)
        url = f"{self._url}/soap/flows/{flow.name}"
        try:
            async with self._http.post(url, data=body, headers=headers, timeout=timeout) as response:
                await response.read()
                await asyncio.sleep(0.5)
                return f"path {response.status}"
        except TimeoutError:
            return "path waits"

    async def _flood(self) -> str:
        async with self._http.get(f"{self._url}/api/v1/cases?limit=1000") as response:
            await response.read()
            return f"flood {response.status}"

    async def _huge_case(self) -> str:
        return f"huge case {await self._post('/cases', self._huge)}"

    async def _half_sent(self) -> str:
        """A request that never ends, by somebody who shows no token."""
        answer = await self._said(b"POST /api/v1/cases HTTP/1.1\r\nhost: localhost\r\nx-", [])
        return f"half sent {answer}"

    async def _slow_body(self) -> str:
        """A large body that comes as slowly as it may."""
        head = (
            f"POST /api/v1/cases HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {self._token}\r\n"
            "content-type: application/json\r\ncontent-length: 15000000\r\n\r\n"
        )
        return f"slow body {await self._said(head.encode(), [b'[1,2,3,4' * 256] * 600)}"

    async def _said(self, head: bytes, parts: Sequence[bytes]) -> str:
        host, _, port = self._url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(head)
            for part in parts:
                await asyncio.sleep(1)
                if reader.at_eof() or time.monotonic() > self._end:
                    break
                writer.write(part)
                await writer.drain()
            answer = await asyncio.wait_for(reader.read(100), max(0.1, self._end - time.monotonic()))
            return answer[9:12].decode() or "closed"
        finally:
            writer.close()
