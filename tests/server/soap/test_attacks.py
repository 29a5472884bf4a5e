"""XML that attacks: bombs, thieves, towers and giants are refused at every door, and the server goes on."""

import re
from collections.abc import Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow
from mendflow.core.model.xml import SchemaText
from mendflow.formats import load
from mendflow.services.messaging.ports.job_messages import JOBS
from mendflow.wiring import RunningServer
from tests.server.soap.shop import (
    ECHO,
    INVOKE,
    RECEIVE,
    REPLY,
    SHOP,
    number_in,
    order,
    partner,
    process,
    told,
    written,
)

SECRET = "told-to-nobody"
LAUGHS = "".join("<!ENTITY l{} '{}'>".format(at, f"&l{at - 1};" * 10) for at in range(1, 12))
DEEP = 20_000
Attack = Callable[[str, Path], str]
"""Makes an attack of a document; the file holds a secret."""


def inside(document: str, hostile: str) -> str:
    """The document with this before the end of its root."""
    before, end, root = document.rpartition("</")
    return f"{before}{hostile}{end}{root}"


def bomb(document: str, _: Path) -> str:
    return f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}]>' + inside(document, "&l11;")


def quadratic(document: str, _: Path) -> str:
    return "<!DOCTYPE d [<!ENTITY long '{}'>]>".format("x" * 50_000) + inside(document, "&long;" * 50_000)


def thief(document: str, secret: Path) -> str:
    return f'<!DOCTYPE d [<!ENTITY it SYSTEM "file://{secret}">]>' + inside(document, "&it;")


def elsewhere(document: str, secret: Path) -> str:
    return f'<!DOCTYPE d SYSTEM "file://{secret}">' + document


def parameter(document: str, secret: Path) -> str:
    return f'<!DOCTYPE d [<!ENTITY % it SYSTEM "file://{secret}"> %it;]>' + document


def tower(document: str, _: Path) -> str:
    return inside(document, "<t>" * DEEP + "</t>" * DEEP)


def giant(document: str, _: Path) -> str:
    return inside(document, '<g a="{}"/>'.format("x" * 200_000))


def centipede(document: str, _: Path) -> str:
    legs = " ".join(f"a{at}='1'" for at in range(10_000))
    return inside(document, f"<c {legs}/>")


def prefixes(document: str, _: Path) -> str:
    names = " ".join(f"xmlns:p{at}='urn:{at}'" for at in range(5_000))
    return inside(document, f"<p {names}/>")


def crowd(document: str, _: Path) -> str:
    return inside(document, "<c/>" * 500_000)


def mountain(document: str, _: Path) -> str:
    return inside(document, f"<m>{'x' * (11 << 20)}</m>")


ATTACKS: list[tuple[Attack, str]] = [
    *((each, "a document type is not taken") for each in (bomb, quadratic, thief, elsewhere, parameter)),
    (tower, "deep"),
    (giant, "the attribute a has more than"),
    (centipede, "attributes"),
    (prefixes, "attributes"),
    (crowd, "elements|larger than|more than"),
    (mountain, "MB|larger than|more than"),
]
"""With what they are refused."""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.txt"
    file.write_text(SECRET)
    return file


@pytest.fixture
async def echo(client: Client, tmp_path: Path) -> str:
    """The address of a flow that answers."""
    await client.deploy(process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    return client.endpoint("echo")


def job() -> str:
    return f"""<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><submit xmlns="{JOBS}">
<JobDefinition xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl"><JobDescription/></JobDefinition></submit></e:Body>
</e:Envelope>"""


@pytest.mark.parametrize(("attack", "reason"), ATTACKS)
@pytest.mark.parametrize("door", ["flows/echo", "jobs", "proxy"])
async def test_soap_messages_that_attack_are_refused_and_begin_nothing(
    server: RunningServer,
    client: Client,
    http: aiohttp.ClientSession,
    echo: str,
    secret: Path,
    attack: Attack,
    reason: str,
    door: str,
) -> None:
    plain = order(1).decode() if door == "flows/echo" else job()
    data = attack(plain[plain.index("<", 1) :] if plain.startswith("<?") else plain, secret).encode()
    async with http.post(f"{server.url}/soap/{door}", data=data) as answer:
        text = await answer.text()
        assert answer.status >= 400
        assert "Fault" in text and re.search(reason, text) and SECRET not in text
    assert await client.cases() == []
    status, body = await client.post("echo", order(7))
    assert (status, number_in(body)) == (200, 7)


@pytest.mark.parametrize(("attack", "reason"), ATTACKS)
async def test_an_answer_of_a_partner_that_attacks_is_a_fault(
    client: Client, tmp_path: Path, secret: Path, attack: Attack, reason: str
) -> None:
    envelope = f"""<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>
<receipt xmlns="{SHOP}">1</receipt></e:Body></e:Envelope>"""
    async with partner(lambda _: told(attack(envelope, secret).encode())) as (address, _):
        await client.deploy(process(tmp_path, "buys", f"<sequence>{RECEIVE}{INVOKE}{REPLY}</sequence>", address))
        status, body = await client.post("buys", order(1))
    assert status == 500
    assert re.search(reason, body.decode()) and SECRET not in body.decode()


def importing(folder: Path) -> Path:
    """A process with a schema of its own."""
    schema = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:types"></xs:schema>'
    path = written(folder, "evil", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>")
    imported = '<import importType="http://www.w3.org/2001/XMLSchema" namespace="urn:types" location="types.xsd"/>'
    path.write_text(path.read_text().replace("<partnerLinks>", f"{imported}<partnerLinks>", 1))
    (folder / "types.xsd").write_text(schema)
    return path


def test_without_an_attack_the_files_of_the_process_are_taken(tmp_path: Path) -> None:
    assert load(importing(tmp_path)).name == "evil"


@pytest.mark.parametrize(("attack", "reason"), ATTACKS)
@pytest.mark.parametrize("file", ["shop.wsdl", "evil.bpel", "types.xsd"])
def test_files_of_a_process_that_attack_are_refused(
    tmp_path: Path, secret: Path, attack: Attack, reason: str, file: str
) -> None:
    path = importing(tmp_path)
    (tmp_path / file).write_text(attack((tmp_path / file).read_text(), secret))
    with pytest.raises(BadFlow) as refused:
        load(path)
    assert re.search(reason, str(refused.value)) and SECRET not in str(refused.value)


def poisoned(flow: Flow, attack: Attack, secret: Path) -> Flow:
    """The flow as somebody could send it who does not use our reader."""
    assert flow.xml is not None
    schemas = tuple(
        SchemaText(location=each.location, namespace=each.namespace, text=attack(each.text, secret))
        for each in flow.xml.schemas
    )
    return msgspec.structs.replace(flow, xml=msgspec.structs.replace(flow.xml, schemas=schemas))


@pytest.mark.parametrize("attack", [bomb, thief, tower, giant])
async def test_schemas_that_attack_do_no_harm_to_whom_they_are_sent(
    client: Client, echo: str, tmp_path: Path, secret: Path, attack: Attack
) -> None:
    checks = f'<sequence>{RECEIVE}<validate variables="order"/>{ECHO}{REPLY}</sequence>'
    await client.deploy(poisoned(process(tmp_path, "checks", checks), attack, secret))
    status, body = await client.post("checks", order(1))
    assert status == 500
    assert SECRET.encode() not in body
    status, body = await client.post("echo", order(7))
    assert (status, number_in(body)) == (200, 7)


STEALS = """<xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"><xsl:template match="/">
<receipt xmlns="urn:test:shop"><xsl:copy-of select="document('SECRET')"/></receipt></xsl:template></xsl:stylesheet>"""
NEVER_ENDS = """<xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0">
<xsl:template match="/" name="on"><xsl:call-template name="on"/></xsl:template></xsl:stylesheet>"""


@pytest.mark.parametrize("sheet", [STEALS, NEVER_ENDS])
async def test_style_sheets_that_attack_are_faults_of_their_flow(
    client: Client, echo: str, tmp_path: Path, secret: Path, sheet: str
) -> None:
    copy = "<copy><from>bpel:doXslTransform('evil.xsl', $order.body)</from><to variable='receipt' part='body'/></copy>"
    (tmp_path / "evil.xsl").write_text(sheet.replace("SECRET", str(secret)))
    await client.deploy(process(tmp_path, "makes", f"<sequence>{RECEIVE}<assign>{copy}</assign>{REPLY}</sequence>"))
    status, body = await client.post("makes", order(1))
    assert status == 500
    assert b"subLanguageExecutionFault" in body and SECRET.encode() not in body
    status, body = await client.post("echo", order(7))
    assert (status, number_in(body)) == (200, 7)
