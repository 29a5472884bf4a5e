"""What came of applying rules to a group of failures: what was taken up, which cases go on, and who runs them."""

from collections.abc import Sequence

from mendflow.cli.options import ServerTarget
from mendflow.cli.printing import say
from mendflow.cli.rule_trials import TRIED_SHOWN
from mendflow.cli.server_file import find_server
from mendflow.core.model.repair_views import ApplyResult
from mendflow.pages.formatting import count_text


def say_applied(applied: ApplyResult) -> None:
    """What came of applying the rules to a group of failures."""
    say(f"applied now to {count_text(len(applied.taken_up), 'failure')}")
    for id in applied.taken_up[:TRIED_SHOWN]:
        say(f"  {id}")
    if applied.cases:
        say(f"{count_text(len(applied.cases), 'case')} had failed and {_go(applied.cases)} on: {names(applied.cases)}")
    if applied.left:
        say(f"the rules say nothing of {count_text(len(applied.left), 'failure')}: {names(applied.left)}")
    for case, reason in applied.refused.items():
        say(f"{case} cannot go on: {reason}; instead: mendflow rerun {case} --from-failed")


def names(ids: Sequence[str]) -> str:
    """The first of them, and how many there are more."""
    more = f", and {len(ids) - TRIED_SHOWN:,} more" if len(ids) > TRIED_SHOWN else ""
    return ", ".join(ids[:TRIED_SHOWN]) + more


def _go(cases: Sequence[str]) -> str:
    return "goes" if len(cases) == 1 else "go"


def tell_who_runs(target: ServerTarget, cases: Sequence[str]) -> None:
    """In a folder without a server nobody runs what goes on."""
    if cases and not target.server and find_server(target.folder) is None:
        each = "" if len(cases) == 1 else ", and so on for each"
        say(f"no server runs them now; continue with mendflow resume {cases[0]}{each}")
