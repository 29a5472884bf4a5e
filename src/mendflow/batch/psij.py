"""Slurm, LSF and PBS, through PSI/J.

PSI/J writes the submit script of each batch system and gives it in. That happens in a process of its own, for two
reasons: whatever hangs there is ended by its time, and nothing of it stays in the server. What the batch system then
has is asked for by name (queues.py), because PSI/J knows jobs by their numbers only, and numbers are given twice."""

import sys
from collections.abc import Collection, Mapping, Sequence

import msgspec

from mendflow.batch.commands import ask
from mendflow.batch.contract import Launch
from mendflow.batch.queues import QUEUES, UNCERTAIN
from mendflow.core.model.sites import Acknowledged, Answer, BatchAway, Found, Rejected, Site, Unsure, Untried

NO_PSIJ = "PSI/J is not installed where the server runs: pip install 'mendflow[batch]'"
START_MS = 20_000
"""How long the process may take beside what the batch system's commands may."""


class Wish(msgspec.Struct, frozen=True):
    """What the process is given: all that PSI/J needs to know of the submissions."""

    site: Site
    folder: str
    scripts: dict[str, str]  # by the names of the pilots


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it says of each, in a line of its own, as soon as it knows."""

    name: str
    native: str = ""
    why: str = ""


class PsijBatch:
    async def submit(self, site: Site, launches: Sequence[Launch]) -> dict[str, Answer]:
        folder = launches[0].folder.parent / "psij"
        wish = Wish(site, str(folder), {each.name: str(each.script) for each in launches})
        words = [sys.executable, "-m", "mendflow.batch.psij_submission"]
        timeout_ms = START_MS + site.batch.timeout_ms
        try:
            said = await ask(site, words, given=msgspec.json.encode(wish), timeout_ms=timeout_ms)
        except BatchAway as error:
            return {each.name: Untried() if place else Rejected(str(error)) for place, each in enumerate(launches)}
        told = {each.name: each for each in _told(said.out)}
        why = "it did not answer in time" if said.code is None else said.last_line
        if "No module named 'psij" in why:
            why = NO_PSIJ
        return _answers([each.name for each in launches], told, why, ended=said.code is not None)

    async def find(self, site: Site) -> dict[str, Found]:
        return await QUEUES[site.batch.kind].listed(site)

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        await QUEUES[site.batch.kind].take_back(site, list(names))


def _told(text: str) -> list[Told]:
    found = []
    for line in text.splitlines():
        try:
            found.append(msgspec.json.decode(line, type=Told))
        except msgspec.DecodeError:
            continue  # something that PSI/J printed, or a line that was cut off
    return found


def _answers(names: Sequence[str], told: Mapping[str, Told], why: str, *, ended: bool) -> dict[str, Answer]:
    """The first that nothing was said of may have been given in; those behind it were not."""
    answers: dict[str, Answer] = {}
    stopped = False
    for name in names:
        each = told.get(name)
        if each is not None and each.native:
            answers[name] = Acknowledged(each.native)
        elif stopped:
            answers[name] = Untried()
        elif each is not None:
            answers[name] = Unsure(each.why) if UNCERTAIN.search(each.why) else Rejected(each.why)
        else:
            answers[name] = Rejected(why) if ended and not told else Unsure(why)
        stopped = stopped or not isinstance(answers[name], Acknowledged)
    return answers
