"""A case is run and shown until it ends on this machine, with a server in this process and a pilot beside it.

The case is durable in the data folder from its first moment, so stopping is safe at any time, and going on is the same
as starting: open the folder, start a pilot, look at the case."""

import subprocess
import sys
import time
from contextlib import AbstractAsyncContextManager

from mendflow.cli.case_ending import wait_for_leftovers
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.group_consent import may_rerun_group
from mendflow.cli.interrupt import InterruptChoice, Interrupts, ask_choice, interrupts
from mendflow.cli.local_cluster import LocalCluster, start_local_cluster
from mendflow.cli.printing import say
from mendflow.cli.progress import follow, progress
from mendflow.cli.remote_runs import Begin, RunOptions, print_result
from mendflow.cli.rule_applying import restart_group, say_rerun
from mendflow.cli.server_file import find_server, refuse_if_taken
from mendflow.cli.start_message import StartMessage, print_reply
from mendflow.cli.summary import print_held
from mendflow.cli.unfinished_cases import folder_option, say_continued, say_unfinished, stopped_cases
from mendflow.cli.wait_explanations import WaitExplainer
from mendflow.cli.web_pages import case_path, show_page
from mendflow.client import Client
from mendflow.core.model.views import CASE_END_STATES, CaseView

LEAVING_SENTENCES = {
    InterruptChoice.STOP: "Stopping: finished jobs are kept; jobs that do not end soon are run again when the case is"
    " resumed.",
    InterruptChoice.DETACH: "Handing over to the background: jobs that do not end soon are run again there.",
}


BACKGROUND_STARTS_S = 10.0


def _local_cluster(options: RunOptions, caught: Interrupts) -> AbstractAsyncContextManager[LocalCluster]:
    return start_local_cluster(
        options.folder,
        caught.event,
        slots=options.slots,
        keep=options.keep,
        hold=options.hold,
        bounds=options.bounds,
    )


async def rerun_group_locally(
    group: str, options: RunOptions, *, unchanged: bool = False, yes: bool = False
) -> ExitCode:
    """Run the cases of a group at the same time, and tell of each as it ends."""
    refuse_if_taken(options.folder)
    codes: list[ExitCode] = []
    with interrupts() as caught:
        async with _local_cluster(options, caught) as cluster:
            stopped = await stopped_cases(cluster.client)
            if not await may_rerun_group(cluster.client, group, caught, yes=yes):
                return ExitCode.INTERRUPTED
            restarted = await restart_group(cluster.client, group, unchanged=unchanged)
            if not options.json:
                say_rerun(restarted)
            for case in [await cluster.client.resume(id) for id in restarted.waited(stopped)] + [
                await cluster.client.case(id) for id in restarted.running
            ]:
                ended, wish = await _follow_to_end(cluster, case, options, caught)
                if ended is None:
                    say(LEAVING_SENTENCES[InterruptChoice.STOP], err=True)
                    await cluster.leave()
                    say(f"Stopped. Continue with: {options.resume_command(case.id)}", err=True)
                    return ExitCode.INTERRUPTED if wish is not InterruptChoice.CONTINUE else ExitCode.CASE_FAILED
                if ended.status not in CASE_END_STATES:
                    codes.append(print_held(ended, json=options.json))
                    continue
                codes.append(await print_result(cluster.client, ended, options))
    return max(codes, default=ExitCode.OK)


async def run_locally(options: RunOptions, begin: Begin, start_message: StartMessage | None = None) -> ExitCode:
    refuse_if_taken(options.folder)
    with interrupts() as caught:
        async with _local_cluster(options, caught) as cluster:
            case = await _begin(cluster.client, begin, options)
            if options.ui:
                await _show_in_browser(cluster, case)
            ended, wish = await _follow_to_end(cluster, case, options, caught)
            if ended is not None and ended.status not in CASE_END_STATES:
                code = print_held(ended, json=options.json)
                await _stay(cluster, options, caught)
                return code
            if ended is not None:
                ended = await wait_for_leftovers(cluster.client, ended, caught.event, quiet=options.quiet)
                if not options.ui:
                    cluster.begin_leaving()  # while the result is printed
                if start_message is not None and not options.json:
                    print_reply(await start_message.end())
                code = await print_result(cluster.client, ended, options)
                await _stay(cluster, options, caught)
                return code
            say(LEAVING_SENTENCES[wish], err=True)
            await cluster.leave()
            last = await cluster.client.case(case.id)
            if last.status in CASE_END_STATES:  # its last jobs ended while we waited for them
                return await print_result(cluster.client, last, options)
    if wish is InterruptChoice.DETACH:
        return _detach(options, str(case.id))
    say(f"Stopped. Continue with: {options.resume_command(case.id)}", err=True)
    return ExitCode.INTERRUPTED


async def _show_in_browser(cluster: LocalCluster, case: CaseView) -> None:
    async with Client(cluster.url) as client:
        await show_page(client, case_path(case.id))


async def _stay(cluster: LocalCluster, options: RunOptions, caught: Interrupts) -> None:
    """Serve the page for as long as somebody looks at it."""
    if options.ui:
        say(f"the web app stays at {cluster.url} until you press Ctrl-C", err=True)
        await caught.event.wait()
        cluster.check()


async def _begin(client: Client, begin: Begin, options: RunOptions) -> CaseView:
    """Begin the case, or go on with it, and tell of those that are left as they are."""
    stopped = await stopped_cases(client)
    case = await begin(client)
    if options.source and case.id in stopped:
        say_continued(case.id)
    if not options.quiet:
        say_unfinished([each for each in stopped if each != case.id], folder_option(options.folder))
    return case


async def _follow_to_end(
    cluster: LocalCluster, case: CaseView, options: RunOptions, caught: Interrupts
) -> tuple[CaseView | None, InterruptChoice]:
    """The case when it has ended; else what is wished instead."""
    while True:
        shown = progress(quiet=options.quiet)
        try:
            explainer = WaitExplainer(cluster.client, quiet=options.quiet, log_is_shown=True)
            ended = await follow(cluster.client, case.id, shown, caught.event, waits=explainer)
        finally:
            shown.close()
        if ended is not None:
            return ended, InterruptChoice.CONTINUE
        cluster.check()
        wish = await ask_choice(caught)
        if wish is not InterruptChoice.CONTINUE:
            return None, wish


def _detach(options: RunOptions, case: str) -> ExitCode:
    """Go on in a process of its own that no terminal ends."""
    log = options.folder / "detached.log"
    command = [sys.executable, "-P", "-m", "mendflow", "resume", case, "--data-dir", str(options.folder)]
    command += ["--jobs", str(options.slots)] + (["--keep"] if options.keep else []) + options.bounds.options
    command += ["--report", str(options.report)] if options.report else []
    command += ["--output-dir", str(options.outputs)] if options.outputs else []
    command += ["--overwrite"] if options.overwrite else []
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    give_up_at = time.monotonic() + BACKGROUND_STARTS_S
    while find_server(options.folder) is None and process.poll() is None and time.monotonic() < give_up_at:
        time.sleep(0.05)
    if process.poll():
        say(
            f"{case} could not be continued in the background, see {log}; continue with mendflow resume {case}",
            err=True,
        )
        return ExitCode.INTERRUPTED
    say(f"{case} goes on in the background and logs to {log}. Watch it with: mendflow watch {case}", err=True)
    return ExitCode.OK
