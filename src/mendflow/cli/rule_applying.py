"""Applies rules to all failures of a group, or tries them again, and prints what followed."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mendflow.cli.case_origins import (
    changed_inputs,
    demand_same_flow,
    has_changed_inputs,
    warn_of_changed_files,
    without_paths_of_others,
)
from mendflow.cli.options import ServerTarget
from mendflow.cli.printing import say
from mendflow.cli.rule_trials import TRIED_SHOWN
from mendflow.cli.server_file import find_server
from mendflow.client import Client
from mendflow.core.model.errors import RequestError, StoreUnavailable, Unreachable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair_views import ApplyResult, DecisionQuery
from mendflow.core.model.rule_views import LeftReason
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView
from mendflow.pages.formatting import count_text

DECISIONS_READ = 10_000
MESSAGES = "-soap"
"""The end of the name under which the cases are numbered that messages begin."""
LEFT_BECAUSE: Mapping[LeftReason, str] = {
    "no-rule": "taken up by no rule",
    "next-try": "waiting for the next try, which no rule changes",
    "passed": "not what the case failed by",
    "run-again": "of a case that was run again meanwhile",
    "stopped": "not begun, as somebody has stopped this",
    "elsewhere": "of a case that another server has",
}
NO_CASES: Mapping[str, str] = {}
NOT_ANEW: Mapping[str, str] = {
    "running": "it has not ended",
    "suspended": "it has not ended",
    "completed": "it has completed meanwhile",
    "cancelled": "it was cancelled",
}
"""Why a case of a group that cannot go on is not started anew, by its status: only failed ones are."""


class GroupRerun(msgspec.Struct, frozen=True, kw_only=True):
    """`started` are new cases, by the failed ones that they run again. `reasons` say of each case that could not go on
    itself why, and `not_started` of those for which none was started why not."""

    applied: ApplyResult
    started: dict[str, str] = {}
    reasons: dict[str, str] = {}
    not_started: dict[str, str] = {}

    @property
    def running(self) -> list[str]:
        return [*self.applied.cases, *self.started.values()]

    def waited(self, cases: Iterable[CaseId]) -> list[CaseId]:
        """Those of the cases that waited for a person, and go on."""
        going = {_case_of(id) for id in self.applied.taken_up}
        return [case for case in cases if case in going]


async def restart_group(client: Client, group: str, *, unchanged: bool = False) -> GroupRerun:
    """All cases that failed by one cause go on: from where they stood, or, where that cannot be, as new cases that take
    over what was completed. A case whose input files were corrected since is such: it would go on with the old ones.
    `unchanged`: these are meant."""
    teller = "" if unchanged else (await client.me()).teller
    other = {} if unchanged else await _with_changed_files(client, group, teller)
    applied = await client.apply_rules(group, retry=True, skip=list(other))
    reasons = dict.fromkeys(other, "its inputs have changed") | refused_cases(applied)
    started, not_started = dict[str, str](), dict[str, str]()
    for case in [each for each in reasons if not is_begun_by_message(each)]:
        try:
            if why := NOT_ANEW.get((await client.case(case)).status, ""):
                not_started[case] = why
            else:
                started[case] = await _start_anew(client, case, teller, unchanged=unchanged)
        except (Unreachable, StoreUnavailable):
            raise
        except RequestError as error:  # the others are started all the same
            not_started[case] = error.message
    return GroupRerun(applied=applied, started=started, reasons=reasons, not_started=not_started)


async def _start_anew(client: Client, case: str, teller: str, *, unchanged: bool) -> str:
    changed: dict[str, Value] = {}
    if not unchanged:
        earlier = without_paths_of_others(await client.case(case), teller)
        changed = await changed_inputs(client, earlier, await client.flow_of(case))
    return str((await client.rerun(case, from_failed=True, inputs=changed)).id)


def refused_cases(applied: ApplyResult) -> dict[str, str]:
    """The cases that cannot go on, with the reason."""
    return {_case_of(id): reason for id, reason in applied.refused.items() if _case_of(id) not in applied.cases}


async def _with_changed_files(client: Client, group: str, teller: str) -> dict[str, CaseView]:
    """The failed cases of a group whose input files are others now. Refused if the flow of one is another now."""
    found: dict[str, CaseView] = {}
    for found_case in await group_cases(client, group):
        case = without_paths_of_others(found_case, teller)
        if case.status == "failed":
            await demand_same_flow(client, case)
            if await has_changed_inputs(client, case):
                found[case.id] = case
    return found


async def group_cases(client: Client, group: str) -> list[CaseView]:
    """The outermost cases of a group that have failed, or in which one of its failures waits for a person."""
    decisions = await client.decisions(DecisionQuery(group=group, limit=DECISIONS_READ))
    waiting = {_case_of(each.id) for each in decisions if each.state == "waiting"}
    cases = [await client.case(case) for case in dict.fromkeys(_case_of(each.id) for each in decisions)]
    return [case for case in cases if case.status == "failed" or case.id in waiting]


async def apply_now(client: Client, group: str) -> ApplyResult:
    """Apply the rules to a group, and tell of the cases that go on which of their files were changed since they were
    started."""
    applied = await client.apply_rules(group)
    for case in applied.cases:
        await warn_of_changed_files(client, await client.case(case))
    return applied


def say_rerun(restarted: GroupRerun) -> None:
    _say_applied(restarted.applied, restarted.reasons, restarted.started, restarted.not_started)


def say_applied(applied: ApplyResult) -> None:
    _say_applied(applied, refused_cases(applied), NO_CASES, NO_CASES)


def _say_applied(
    applied: ApplyResult,
    reasons: Mapping[str, str],
    started: Mapping[str, str],
    not_started: Mapping[str, str],
) -> None:
    """What was taken up, which cases go on, and why others do not. `started` run in the place of those that could not
    go on."""
    if cases := applied.cases:
        go = "goes on from where it" if len(cases) == 1 else "go on from where they"
        say(f"{count_text(len(cases), 'case')} {go} stood: {names(cases)}")
    if waited := [id for id in applied.taken_up if _case_of(id) not in cases]:
        say(f"{count_text(len(waited), 'failure')} that waited {'is' if len(waited) == 1 else 'are'} taken up:")
        for id in waited[:TRIED_SHOWN]:
            say(f"  {id}")
    _say_left(applied)
    for case, reason in reasons.items():
        if case in started:
            say(f"{started[case]} started in the place of {case}: {reason}")
        elif case in not_started:
            say(f"{case} cannot go on: {reason}; none was started in its place: {not_started[case]}")
        elif is_begun_by_message(case):
            say(f"{case} cannot go on: {reason}")
        else:
            say(f"{case} cannot go on: {reason}; instead: mendflow rerun {case} --from-failed")
    for id in [each for each in applied.refused if _case_of(each) in applied.cases]:
        say(f"{id} waits for a person: {applied.refused[id]}")
    if not (applied.taken_up or applied.cases or applied.left or reasons):
        say("No case of this group waits, or has failed and was not run again: there is nothing to go on with.")


def _say_left(applied: ApplyResult) -> None:
    """Which failures stay as they are, by the reason."""
    if not applied.left:
        return
    are = "is left as it is" if len(applied.left) == 1 else "are left as they are"
    say(f"{count_text(len(applied.left), 'failure')} {are}:")
    by_reason: dict[str, list[str]] = {}
    for id in applied.left:
        reason = applied.why_left.get(id)
        by_reason.setdefault(LEFT_BECAUSE[reason] if reason else "the server does not say why", []).append(id)
    for text, ids in by_reason.items():
        say(f"  {text}: {names(ids)}")


def _case_of(decision: str) -> str:
    """The outermost case of a decision; those that messages began are numbered under one name."""
    name, *numbers = decision.partition("/")[0].split(".")
    return ".".join((name, *numbers[:1])) if name.endswith(MESSAGES) else name


def is_begun_by_message(case: str) -> bool:
    return case.partition(".")[0].endswith(MESSAGES)


def names(ids: Sequence[str]) -> str:
    """The first of them, and how many there are more."""
    more = f", and {len(ids) - TRIED_SHOWN:,} more" if len(ids) > TRIED_SHOWN else ""
    return ", ".join(ids[:TRIED_SHOWN]) + more


def print_who_runs(target: ServerTarget, cases: Sequence[str]) -> None:
    """In a folder without a server nobody runs what goes on."""
    if cases and not target.server and find_server(target.folder) is None:
        if len(cases) == 1:
            say(f"no server runs it now; continue with mendflow resume {cases[0]}")
        else:
            say("no server runs them now; continue all of them with mendflow serve --jobs 4")
