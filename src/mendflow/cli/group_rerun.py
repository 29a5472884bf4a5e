"""All cases that failed by one cause go on: from where they stood, or, where that cannot be, as new cases that take
over what was completed."""

import re
from collections.abc import Iterable

import msgspec

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair_views import ApplyResult
from mendflow.pages.formatting import count_text


class GroupRerun(msgspec.Struct, frozen=True, kw_only=True):
    """`started` are new cases, by the failed ones that they run again."""

    applied: ApplyResult
    started: dict[str, str] = {}

    @property
    def running(self) -> list[str]:
        return [*self.applied.cases, *self.started.values()]

    def waited(self, cases: Iterable[CaseId]) -> list[CaseId]:
        """Those of the cases that waited for a person, and go on."""
        return [case for case in cases if any(re.match(rf"{case}[/.:]", id) for id in self.applied.taken_up)]


async def restart_group(client: Client, group: str) -> GroupRerun:
    applied = await client.apply_rules(group, retry=True)
    started = {case: (await client.rerun(case, from_failed=True)).id for case in applied.refused}
    return GroupRerun(applied=applied, started=dict(started))


def say_restarted(restarted: GroupRerun) -> None:
    cases = restarted.applied.cases
    if cases:
        go = "goes on from where it" if len(cases) == 1 else "go on from where they"
        say(f"{count_text(len(cases), 'case')} {go} stood: {', '.join(cases)}")
    for case, again in restarted.started.items():
        say(f"{again} started in the place of {case}: {restarted.applied.refused[case]}")
    waited = len(restarted.applied.taken_up) - len(cases)
    if not restarted.running and waited <= 0:
        say("No case of this group has failed or waits: there is nothing to go on with.")
