"""A style sheet runs in a process that the system bounds, and the flow always gets a value or a fault."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.model.faults import Fault
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_value
from mendflow.services.base.counters import LabeledCounter
from mendflow.services.messaging.style_sheets import ProcessTransformer, SheetLimits

HEAD = 'xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"'
ECHO = f"""<xsl:stylesheet {HEAD}><xsl:template match="@*|node()"><xsl:copy>
<xsl:apply-templates select="@*|node()"/></xsl:copy></xsl:template></xsl:stylesheet>"""
ENDLESS = f"""<xsl:stylesheet {HEAD}><xsl:template match="/"><xsl:call-template name="on"/></xsl:template>
<xsl:template name="on"><xsl:for-each select="//*|//text()"><xsl:for-each select="//*|//text()">
<xsl:for-each select="//*|//text()"><xsl:for-each select="//*"><xsl:value-of select="count(//*) * count(//text())"/>
</xsl:for-each></xsl:for-each></xsl:for-each></xsl:for-each></xsl:template></xsl:stylesheet>"""
DOUBLING = f"""<xsl:stylesheet {HEAD}><xsl:template name="more"><xsl:param name="text"/><xsl:param name="left"/>
<xsl:choose><xsl:when test="$left &gt; 0"><xsl:call-template name="more">
<xsl:with-param name="text" select="concat($text, $text)"/><xsl:with-param name="left" select="$left - 1"/>
</xsl:call-template></xsl:when><xsl:otherwise><r><xsl:value-of select="$text"/></r></xsl:otherwise></xsl:choose>
</xsl:template><xsl:template match="/"><xsl:call-template name="more">
<xsl:with-param name="text" select="'0123456789'"/>
<xsl:with-param name="left" select="TIMES"/></xsl:call-template></xsl:template></xsl:stylesheet>"""
WIDE = "<a>" + "<b>x</b>" * 2000 + "</a>"


def ran(sheet: str, source: str = "<a/>", bounds: SheetLimits | None = None) -> Value | Fault:
    return asyncio.run(ProcessTransformer(bounds).transform({"s.xsl": sheet}, "s.xsl", source))


def said(made: Value | Fault) -> str:
    assert isinstance(made, Fault)
    assert made.name == "subLanguageExecutionFault"
    return made.message


def test_a_sheet_is_run_elsewhere_and_its_result_comes_back() -> None:
    assert ran(ECHO, "<a><b>7</b></a>") == element_value("<a><b>7</b></a>")


def test_a_sheet_that_is_not_there_is_a_fault_by_its_own_name() -> None:
    made = asyncio.run(ProcessTransformer().transform({}, "s.xsl", "<a/>"))
    assert isinstance(made, Fault)
    assert made.name == "xsltStylesheetNotFound"


def test_a_broken_sheet_is_a_fault_that_says_why() -> None:
    assert "s.xsl" in said(ran(ECHO.replace("<xsl:copy>", '<xsl:copy><xsl:call-template name="nobody"/>')))


def test_how_they_ended_is_counted() -> None:
    counted = LabeledCounter()
    transformer = ProcessTransformer(counted=counted)

    async def both() -> None:
        await transformer.transform({"s.xsl": ECHO}, "s.xsl", "<a/>")
        await transformer.transform({}, "s.xsl", "<a/>")

    asyncio.run(both())
    assert counted.flat() == {"made": 1, "xsltStylesheetNotFound": 1}


@pytest.mark.full
def test_a_sheet_that_never_ends_is_stopped_by_its_time_on_processors() -> None:  # XML attacks
    assert "stopped" in said(ran(ENDLESS, WIDE, SheetLimits(cpu_s=1)))


def test_a_sheet_that_never_ends_is_stopped_by_the_clock() -> None:  # XML attacks
    assert "did not end within 1 s" in said(ran(ENDLESS, WIDE, SheetLimits(wall_s=1)))


def test_a_sheet_that_calls_itself_for_ever_is_stopped() -> None:  # XML attacks
    loop = f"""<xsl:stylesheet {HEAD}><xsl:template match="/" name="on"><xsl:call-template name="on"/></xsl:template>
</xsl:stylesheet>"""
    assert said(ran(loop))


@pytest.mark.full
def test_a_sheet_that_wants_all_memory_is_stopped() -> None:  # XML attacks
    assert said(ran(DOUBLING.replace("TIMES", "27"), bounds=SheetLimits(memory_bytes=400 << 20)))


def test_a_sheet_that_makes_too_much_is_stopped() -> None:  # XML attacks
    assert "makes more than 1 MB" in said(
        ran(DOUBLING.replace("TIMES", "18"), bounds=SheetLimits(result_bytes=1 << 20))
    )


def test_a_sheet_reads_nothing_of_the_machine(tmp_path: Path) -> None:  # XML attacks
    (tmp_path / "secret.xml").write_text("<secret/>")
    inner = f"""<r><xsl:copy-of select="document('{tmp_path}/secret.xml')"/></r>"""
    text = f'<xsl:stylesheet {HEAD}><xsl:template match="/">{inner}</xsl:template></xsl:stylesheet>'
    assert "secret/" not in said(ran(text))


def test_when_a_sheet_runs_its_process_can_open_nothing_any_more() -> None:  # XML attacks
    words = """
import socket
from mendflow.services.messaging.style_sheet_process import apply_limits
from mendflow.services.messaging.style_sheets import SheetLimits
apply_limits(SheetLimits())
for way in (lambda: open("/etc/hostname"), socket.socket):
    try:
        way()
    except OSError as error:
        print(error.errno)
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["24", "24"]


def test_a_process_sees_nothing_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENDFLOW_TOKEN", "secret")
    seen: list[dict[str, str]] = []
    start = asyncio.create_subprocess_exec

    async def watched(*words: str, env: dict[str, str], **more: object) -> asyncio.subprocess.Process:
        seen.append(env)
        return await start(*words, env=env, **more)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(asyncio, "create_subprocess_exec", watched)
    assert ran(ECHO) == element_value("<a/>")
    assert "secret" not in seen[0].values()


def test_no_process_is_left_when_who_asked_goes_away() -> None:
    async def ask() -> set[int]:
        before = children()
        asking = asyncio.create_task(ProcessTransformer().transform({"s.xsl": ENDLESS}, "s.xsl", WIDE))
        while not children() - before:
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        return children() - before

    assert asyncio.run(ask()) == set()


def children() -> set[int]:
    text = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return set(map(int, text.split()))
