"""The unfinished cases of a folder that no server runs: which there are, and how they are continued or ended.

A command that runs one case leaves them as they are, and says that they are there."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mendflow.cli.options import DATA_VARIABLE, ServerTarget, store_url
from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import CaseView

NAMED_MAX: Final = 3
READ_MAX: Final = 1000


async def live_cases(client: Client) -> list[CaseView]:
    """The cases that have not ended and that no other called or is mended by, the newest first."""
    live = [case for status in ("running", "suspended") for case in await client.cases(status=status, limit=READ_MAX)]
    own = [case for case in live if case.parent is None and case.mends is None and not case.engine]
    return sorted(own, key=lambda case: case.started_at, reverse=True)


async def stopped_cases(client: Client) -> list[CaseId]:
    return [case.id for case in await live_cases(client) if case.stopped]


def say_continued(case: CaseId) -> None:
    say(f"{case} was stopped before its end and goes on now; run FLOW --new would start another case", err=True)


def say_unfinished(cases: Sequence[CaseId], folder_option: str) -> None:
    """One line for each of the newest, and one for the rest. `folder_option` selects the folder in a command."""
    for case in cases[:NAMED_MAX]:
        say(
            f"{case} is unfinished; `mendflow resume {case}{folder_option}` continues it,"
            f" `mendflow cancel {case}{folder_option}` ends it",
            err=True,
        )
    if len(cases) > NAMED_MAX:
        more = f"{len(cases) - NAMED_MAX:,} more"
        say(f"{more} are unfinished; `mendflow cases --status running{folder_option}` lists them", err=True)


def running_server_text(case: CaseId, target: ServerTarget) -> str:
    """What is to be done so that a case that was started without a server runs."""
    folder = folder_option(target.folder)
    return (
        f"no server runs here, so nothing of it runs yet: `mendflow resume {case}{folder}` runs it,"
        f" `mendflow serve --jobs 2{folder}` runs all cases of this folder"
    )


def folder_option(folder: Path) -> str:
    """The option that selects this folder, if a command without it would use another."""
    if store_url() or folder == ServerTarget(data=os.environ.get(DATA_VARIABLE, "")).folder:
        return ""
    return f" --data-dir {shlex.quote(str(folder))}"
