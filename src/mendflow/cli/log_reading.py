"""What jobs printed, part by part: of one attempt, of all attempts of a job, or of all items of a loop or a case, one
after the other."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import msgspec

from mendflow.cli.case_ending import all_items
from mendflow.cli.case_references import find_reference
from mendflow.cli.connection import connect
from mendflow.cli.options import ServerTarget
from mendflow.client import Client
from mendflow.core.engine.plan import compile_flow, work_below
from mendflow.core.model.errors import InvalidRequest, NotFound, Unreachable
from mendflow.core.model.views import ItemView, LogView
from mendflow.pages.formatting import count_text, one_line

FOLLOW_EVERY_S = 0.5
NAMES_SHOWN = 10


class LogSection(msgspec.Struct, frozen=True, kw_only=True):
    """The log of one attempt, of the last one if it is 0. `made_by` is the job whose log it is, if its result was taken
    from the cache."""

    job: str
    title: str = ""
    attempt: int = 0
    made_by: str = ""


class LogReading:
    """Logs from their beginning; while a job is followed, from attempt to attempt up to its end. The server that runs a
    single case ends with it: the rest is then read from the folder."""

    def __init__(
        self, target: ServerTarget, subject: str, attempt: int = 0, *, follow: bool = False, last_only: bool = False
    ) -> None:
        self._target, self._subject, self._attempt = target, subject, attempt
        self._follow, self._last_only = follow, follow or last_only
        self._at, self._number, self._index = 0, 0, 0
        self._sections: list[LogSection] = []

    @property
    def section(self) -> LogSection | None:
        """The one that is being read."""
        return self._sections[self._index] if self._index < len(self._sections) else None

    @property
    def is_of_several(self) -> bool:
        return len(self._sections) > 1

    async def parts(self) -> AsyncGenerator[LogView, None]:
        for last_try in (False, True):
            try:
                async with connect(self._target) as client:
                    await self._find(client)
                    while self._index < len(self._sections):
                        async for part in self._read(client, self._sections[self._index]):
                            yield part
                        self._next()
                return
            except Unreachable:
                if self._target.server or last_try:
                    raise

    async def _find(self, client: Client) -> None:
        if self._sections:
            return
        items = await items_meant(client, self._subject)
        if self._follow and len(items) > 1:
            names = ", ".join(f"{item.case}:{item.item}" for item in items[:NAMES_SHOWN])
            raise InvalidRequest(f"{self._subject} are {count_text(len(items), 'job')}; follow one of them: {names}")
        self._sections = [
            section for item in items for section in _sections(item, self._attempt, last_only=self._last_only)
        ]
        self._number = self._sections[0].attempt

    def _next(self) -> None:
        self._index += 1
        self._at, self._number = 0, self.section.attempt if self.section is not None else 0

    async def _read(self, client: Client, section: LogSection) -> AsyncGenerator[LogView, None]:
        job = section.made_by or section.job
        while True:
            part = await client.log(job, attempt=self._number, offset=self._at)
            left_out, goes_on = part.offset - self._at, self._at < part.next < part.size
            self._at, self._number = part.next, part.attempt
            yield _with_gap(part, left_out) if left_out > 0 and not part.silent else part
            if goes_on and not part.silent:
                continue
            if not self._follow or (part.over and section.attempt):
                return
            if part.over and await self._is_tried_again(client, job):
                continue
            if part.over and part.job_over:
                return
            await asyncio.sleep(FOLLOW_EVERY_S)

    async def _is_tried_again(self, client: Client, job: str) -> bool:
        """Go on with the next attempt, if there is one; several may have ended since the last look."""
        newest = await client.log(job)
        if newest.attempt <= self._number:
            return False
        self._at, self._number = 0, self._number + 1
        return True


async def items_meant(client: Client, text: str) -> list[ItemView]:
    """The items with a job that a person names: one, those of a loop, or those of a whole case."""
    subject = await find_reference(client, text)
    if not subject.item:
        items = [item for item in await all_items(client, subject.case) if item.job]
        if not items:
            raise NotFound(f"no job of {subject.case} has begun; see mendflow why {subject.case}")
        return items
    try:
        view = await client.item(subject.case, subject.item)
    except NotFound:
        names = await _names_below(client, subject.case, subject.item)
        items = [item for item in await all_items(client, subject.case) if item.name in names and item.job]
        if not items:
            raise
        return items
    if view.job is None and view.state == "skipped":
        raise NotFound(f"{text} was skipped and never ran; see mendflow why {view.case}:{view.item}")
    if view.job is None:
        raise NotFound(f"{text} is a {view.kind}, which prints nothing; see mendflow why {view.case}:{view.item}")
    return [view]


async def _names_below(client: Client, case: str, name: str) -> set[str]:
    """The names of the jobs of an activity: its own, and those of what is in it, as in a loop."""
    plan = compile_flow(await client.flow_of(case), taken=True)
    found = [node for node in plan.nodes if name in (node.name, node.shown)]
    return {name, *(each.shown for node in found for each in work_below(plan, node.index))}


def _sections(item: ItemView, attempt: int, *, last_only: bool) -> Iterator[LogSection]:
    job = str(item.job)
    if item.cached_from:
        title = f"{item.shown}, cached: this is what {item.cached_from} printed, which made the result"
        yield LogSection(job=job, title=title, made_by=item.cached_from, attempt=attempt)
        return
    begun = [each for each in item.attempts if each.end != "returned"]
    if attempt or last_only or len(begun) < 2:
        yield LogSection(job=job, title=item.shown, attempt=attempt)
        return
    for each in begun:
        end = f": {each.end}" if each.end else ""
        told = f", {one_line(each.fault.message, 120)}" if each.fault is not None else ""
        title = f"{item.shown}, attempt {each.number} of {begun[-1].number}{end}{told}"
        yield LogSection(job=job, title=title, attempt=each.number)


def _with_gap(part: LogView, left_out: int) -> LogView:
    line = f"\n[mendflow: {left_out} bytes were left out here]\n"
    data = line.encode() + part.data if part.data else b""
    return msgspec.structs.replace(part, text=line + part.text, data=data)
