"""The log of a server: in lines of text or JSON, with the request, the case and whoever asked, in files of a bounded
size. SE-7"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl

from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, RequestError
from mendflow.log_lines import log_to_terminal
from mendflow.server.app import _api_description, openapi_description
from mendflow.server.log_output import LogOptions, LogOutput
from mendflow.services.api.domain import Domain
from tests.server.conftest import Serving
from tests.server.conversation import job_flow
from tests.server.people import KnownPeople

Opening = Callable[..., LogOutput]
log = logging.getLogger("mendflow.tried")


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Opening]:
    """Opens logs in the file `log` of the folder, and closes them in the end."""
    opened: list[LogOutput] = []

    def begin(**options: Any) -> LogOutput:
        opened.append(LogOutput(LogOptions(**{"file": str(tmp_path / "log"), **options})))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_each_line_has_who_asked_what_about_which_case(
    opening: Opening, serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    served = await serving(KnownPeople())
    async with Client(served.url, token="ann") as ann:
        await ann.deploy(job_flow("one"))
        case = (await ann.start("one")).id
        suspend, later, left = Domain.suspend, asyncio.Event(), list[asyncio.Task[None]]()

        async def and_tell(domain: Domain, case: str, item: str = "", **more: Any) -> Any:
            log.warning("said on\nthe way")

            async def afterwards() -> None:
                await later.wait()
                log.warning("said afterwards", extra={"case": "other"})

            left.append(asyncio.create_task(afterwards()))
            return await suspend(domain, case, item, **more)

        monkeypatch.setattr(Domain, "suspend", and_tell)
        opening(form="json", level="info")
        headers = {"authorization": "Bearer ann", "x-request-id": "mine-17"}
        async with http.post(f"{served.url}/api/v1/cases/{case}/suspend", headers=headers, json={}) as response:
            assert response.status == 200
        later.set()
        await asyncio.gather(*left)
    said, asked, after = [each for each in lines(tmp_path / "log") if each["logger"].startswith("mendflow.")]
    known = said["request"]
    assert known.startswith("mine-17.")
    assert said["time"].endswith("Z") and len(said.pop("time")) == 24
    assert said == {
        "level": "warning",
        "logger": "mendflow.tried",
        "message": "said on\nthe way",
        "request": known,
        "case": case,
        "who": "ann",
    }
    assert (asked["logger"], asked["request"], asked["who"]) == ("mendflow.requests", known, "ann")
    assert asked["message"].startswith(f"POST /api/v1/cases/{case}/suspend: 200 in ")
    assert "request" not in after and "who" not in after, "the request was over"
    assert after["case"] == "other"


def test_an_error_is_in_the_line_too(opening: Opening, tmp_path: Path) -> None:
    opening(form="json")
    try:
        raise RequestError("no \x1b[31m way")
    except RequestError:
        log.exception("it failed")
    log.info("too little to be told")
    [line] = lines(tmp_path / "log")
    assert line["message"] == "it failed" and line["error"].endswith("no \x1b[31m way")
    assert "\x1b" not in (tmp_path / "log").read_text()


def test_lines_of_text_are_told_apart(opening: Opening, tmp_path: Path) -> None:
    opening()
    log.warning("one\n2026-11-17T00:00:00.000Z ERROR mendflow: forged", extra={"case": "c-1"})
    first, second = (tmp_path / "log").read_text().splitlines()
    assert " WARNING mendflow.tried: one" in first
    assert second.startswith("  2026") and second.endswith("[case=c-1]")


def test_a_large_file_is_continued_in_a_new_one(opening: Opening, tmp_path: Path) -> None:
    opening(form="json", bytes_max=1000, kept=2)
    for number in range(50):
        log.warning("line %d", number)
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["log", "log.1", "log.2"]
    for each in files:
        assert (tmp_path / each).stat().st_size <= 1000
        assert (tmp_path / each).stat().st_mode & 0o777 == 0o600
    assert lines(tmp_path / "log")[-1]["message"] == "line 49"


def test_a_file_that_was_moved_is_opened_again(opening: Opening, tmp_path: Path) -> None:
    output = opening(form="json")
    log.warning("before")
    (tmp_path / "log").rename(tmp_path / "moved")
    log.warning("still there")
    output.reopen()
    log.warning("after")
    assert [each["message"] for each in lines(tmp_path / "moved")] == ["before", "still there"]
    assert [each["message"] for each in lines(tmp_path / "log")] == ["the log file was opened again", "after"]


def test_a_file_that_cannot_be_opened_again_is_written_on(opening: Opening, tmp_path: Path) -> None:
    output = opening(form="json")
    (tmp_path / "log").rename(tmp_path / "moved")
    (tmp_path / "log").mkdir()
    output.reopen()
    log.warning("after")
    told = [each["message"] for each in lines(tmp_path / "moved")]
    assert "cannot be opened again: Is a directory" in told[0] and told[1] == "after"


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"--log-file .*/none/log cannot be written: No such file or directory"):
        LogOutput(LogOptions(file=str(tmp_path / "none" / "log")))


def test_what_a_job_would_tell_a_terminal_is_not_in_the_log(opening: Opening, tmp_path: Path) -> None:  # SE-7
    opening()
    try:
        raise ValueError("\x1b]52;c;cm0gLXJm\x07and \x1b[31mred")
    except ValueError:
        log.exception("job %s failed: %s", "a/1", "first\rsecond \x1b]52;c;cm0gLXJm\x07\x1b[2Jthird\x9b31m")
    told = (tmp_path / "log").read_text()
    assert r"job a/1 failed: first\rsecond \x1b]52;c;cm0gLXJm\x07\x1b[2Jthird\x9b31m" in told
    assert r"\x07and \x1b[31mred" in told
    assert not [each for each in told if each != "\n" and not each.isprintable()]


def test_nothing_that_is_named_in_a_message_begins_a_line(opening: Opening, tmp_path: Path) -> None:  # SE-7
    opening()
    forged = "x\n2026-11-17T00:00:00.000Z ERROR mendflow: forged\u2028\x00\u202eyou"
    try:
        raise ValueError(forged)
    except ValueError:
        log.exception("GET %s: %s", f"/{forged}", 404, extra={"case": forged})
    log.warning("%(path)s is asked for", {"path": forged})
    told = (tmp_path / "log").read_text()
    assert [each for each in told.splitlines() if "forged" in each and each.startswith(("x", "2026-11-17"))] == []
    assert r"GET /x\n2026-11-17T00:00:00.000Z ERROR mendflow: forged\u2028\x00\u202eyou: 404" in told
    assert len(told.splitlines()) == len([each for each in told.split("\n") if each])


async def test_nor_does_an_address_that_somebody_asks_for(
    opening: Opening, tmp_path: Path, domain: Domain, serving: Serving
) -> None:  # SE-7
    opening(level="info")
    served = await serving(KnownPeople())
    async with aiohttp.ClientSession() as http:
        url = yarl.URL(f"{served.url}/x%0a%1b%5b2JINFO%20forged", encoded=True)
        async with http.get(url, headers={"Authorization": "Bearer vera"}) as answer:
            assert answer.status == 404
    [line] = [each for each in (tmp_path / "log").read_text().split("\n") if "forged" in each]
    assert r"mendflow.requests: GET /x\n\x1b[2JINFO forged: 404" in line


async def test_whoever_asks_for_the_description_of_the_api_leaves_the_log_as_it_is(
    opening: Opening, tmp_path: Path, domain: Domain, serving: Serving
) -> None:  # SE-7
    opening(level="info")
    served = await serving(KnownPeople())
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    openapi_description.cache_clear()
    _api_description.cache_clear()
    forged = "/x%0a2026-11-17T00:00:00.000Z%20WARNING%20mendflow:%20forged%1b[2J"
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{served.url}/api/v1/openapi.json") as answer:
            assert answer.status == 200
        async with http.get(
            yarl.URL(f"{served.url}{forged}", encoded=True), headers={"Authorization": "Bearer vera"}
        ) as answer:
            assert answer.status == 404
    assert (root.handlers, root.level) == (handlers, level)
    [line] = [each for each in (tmp_path / "log").read_text().split("\n") if "forged" in each]
    assert r"mendflow.requests: GET /x\n2026-11-17T00:00:00.000Z WARNING mendflow: forged\x1b[2J: 404" in line


def test_what_nobody_has_said_where_to_write_is_escaped_too(capsys: pytest.CaptureFixture[str]) -> None:  # SE-7
    record = logging.LogRecord("mendflow", logging.WARNING, "", 0, "%s is away", ("a\n\x1b[31mb",), None)
    before, last = logging.lastResort.formatter if logging.lastResort else None, logging.lastResort
    assert last is not None
    try:
        log_to_terminal()
        last.handle(record)
    finally:
        last.setFormatter(before)
    assert capsys.readouterr().err == "a\\n\\x1b[31mb is away\n"
