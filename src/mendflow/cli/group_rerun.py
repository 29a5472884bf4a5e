"""All cases that failed by one cause go on: from where they stood, or, where that cannot be, as new cases that take
over what was completed."""

import msgspec

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.repair_views import ApplyResult
from mendflow.pages.formatting import count_text


class RevivedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """`started` are new cases, by the failed ones that they run again."""

    applied: ApplyResult
    started: dict[str, str] = {}

    @property
    def running(self) -> list[str]:
        return [*self.applied.cases, *self.started.values()]


async def revive_group(client: Client, group: str) -> RevivedGroup:
    applied = await client.apply_rules(group, retry=True)
    started = {case: (await client.rerun(case, from_failed=True)).id for case in applied.refused}
    return RevivedGroup(applied=applied, started=dict(started))


def say_revived(revived: RevivedGroup) -> None:
    cases = revived.applied.cases
    if cases:
        go = "goes on from where it" if len(cases) == 1 else "go on from where they"
        say(f"{count_text(len(cases), 'case')} {go} stood: {', '.join(cases)}")
    for case, again in revived.started.items():
        say(f"{again} started in the place of {case}: {revived.applied.refused[case]}")
    waited = len(revived.applied.taken_up) - len(cases)
    if not revived.running and waited <= 0:
        say("No case of this group has failed or waits: there is nothing to go on with.")
