"""Says which cases `rerun --group` takes, before it begins: a group may span other flows than the one that a person has
in mind. At a terminal it asks."""

import sys
from collections import Counter

from mendflow.cli.interrupt import Interrupts, read_line
from mendflow.cli.printing import say
from mendflow.cli.rule_applying import group_cases
from mendflow.client import Client
from mendflow.pages.formatting import count_text

FLOWS_SHOWN = 10
NOT_BEGUN = "Nothing was begun. One case alone: mendflow rerun CASE --from-failed"


async def may_rerun_group(client: Client, group: str, caught: Interrupts, *, yes: bool) -> bool:
    """Whether the cases of a group are to go on. Asked is only a person, and only if there are several cases."""
    flows = Counter(case.flow for case in await group_cases(client, group))
    if not flows:
        return True
    told = ", ".join(f"{number:,} of {flow}" for flow, number in flows.most_common(FLOWS_SHOWN))
    more = f" and {len(flows) - FLOWS_SHOWN:,} more flows" if len(flows) > FLOWS_SHOWN else ""
    say(f"the group {group} has {count_text(flows.total(), 'case')} to go on: {told}{more}", err=True)
    if yes or flows.total() == 1 or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    say("Let them go on? [y/N] (--yes does not ask)", err=True)
    if (await read_line(caught) or "").strip().lower() in ("y", "yes"):
        return True
    say(NOT_BEGUN, err=True)
    return False
