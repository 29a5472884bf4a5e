"""A case is run on a server that runs already, and shown until it ends; and what is told of a case at its end, wherever
it ran."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from mendflow.cli.case_ending import collect_ending
from mendflow.cli.case_origins import with_own_paths
from mendflow.cli.connection import connect
from mendflow.cli.exit_codes import EnvironmentUnfit, ExitCode
from mendflow.cli.interrupt import interrupts
from mendflow.cli.options import ServerTarget
from mendflow.cli.output_files import fetch_outputs
from mendflow.cli.output_paths import check_folder, check_report
from mendflow.cli.printing import print_json, say
from mendflow.cli.progress import follow, progress
from mendflow.cli.summary import print_held, print_summary, relative, result_json, write_report
from mendflow.cli.unfinished_cases import folder_option
from mendflow.cli.wait_explanations import WaitExplainer
from mendflow.cli.web_pages import case_path, show_page
from mendflow.client import Client
from mendflow.client.server_file import REPORTS
from mendflow.core.data.case_origins import bounded_origin
from mendflow.core.model.views import CASE_END_STATES, CaseOrigin, CaseView
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds

Begin = Callable[[Client], Awaitable[CaseView]]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a case is to be run and told."""

    folder: Path
    slots: int = 0
    report: Path | None = None
    outputs: Path | None = None
    overwrite: bool = False
    quiet: bool = False
    json: bool = False
    keep: bool = False
    hold: bool = False
    ui: bool = False  # whether the case is shown in a browser, too
    bounds: AttemptBounds = USUAL_BOUNDS
    source: str = ""  # the command that runs the flow file again, if the case came from one

    def kept_with(self, origin: CaseOrigin) -> CaseOrigin:
        """What is kept with the case, so that whoever resumes it need not say it again."""
        output_dir, report = (str(each) if each else "" for each in (self.outputs, self.report))
        return bounded_origin(msgspec.structs.replace(origin, output_dir=output_dir, report=report))

    def resume_command(self, case: str) -> str:
        """The command that continues the case, with the options that are of this run and not kept with the case."""
        words = [*(["--jobs", str(self.slots)] if self.slots else []), *(["--keep"] if self.keep else [])]
        words += ["--overwrite"] if self.overwrite else []
        return " ".join(["mendflow", "resume", case, *words]) + folder_option(self.folder)


def run_options(
    folder: Path,
    slots: int,
    report: str,
    output_dir: str,
    *,
    overwrite: bool,
    quiet: bool,
    json: bool,
    keep: bool,
    bounds: AttemptBounds,
) -> RunOptions:
    """The options of a run, as given on the command line; refused if a place cannot be written to."""
    page = Path(report).absolute() if report else None
    outputs = Path(output_dir).absolute() if output_dir else None
    check_report("--report", page)
    check_folder("--output-dir", outputs)
    return RunOptions(
        folder=folder,
        slots=slots,
        report=page,
        outputs=outputs,
        overwrite=overwrite,
        quiet=quiet,
        json=json,
        keep=keep,
        bounds=bounds,
    )


async def run_on_server(target: ServerTarget, options: RunOptions, begin: Begin) -> ExitCode:
    """On a server: start the case, and show it until it ends. Ctrl-C ends the looking on, not the case."""
    async with connect(target) as client:
        case = await begin(client)
        if options.ui:
            await show_page(client, case_path(case.id))
        shown = progress(quiet=options.quiet)
        with interrupts() as caught:
            try:
                explainer = WaitExplainer(client, quiet=options.quiet)
                ended = await follow(client, case.id, shown, caught.event, waits=explainer)
            finally:
                shown.close()
        if ended is None:
            where = f" at {target.server}" if target.server else ""
            say(f"{case.id} goes on{where}; see it with mendflow watch {case.id}", err=True)
            return ExitCode.INTERRUPTED
        if ended.status not in CASE_END_STATES:
            return print_held(ended, json=options.json)
        return await print_result(client, ended, options)


async def print_result(client: Client, case: CaseView, options: RunOptions) -> ExitCode:
    """The summary comes first: it must not be lost over outputs or a report that cannot be written."""
    ending = await collect_ending(client, case)
    origin = (await with_own_paths(client, case)).origin or CaseOrigin()
    outputs = options.outputs or Path(origin.output_dir or f"outputs/{case.id}")
    fetched = await fetch_outputs(client, case, outputs, overwrite=options.overwrite)
    path = options.report or Path(origin.report or options.folder / REPORTS / f"{case.id}.html")
    if not options.json:
        print_summary(ending, fetched.paths, source=options.source, wanted_in=options.outputs)
        fetched.say_others()
    try:
        await write_report(client, ending, path)
    except (OSError, EnvironmentUnfit):
        if options.json:
            print_json(result_json(case, fetched.paths, None))
        raise
    if options.json:
        print_json(result_json(case, fetched.paths, path))
    else:
        say(f"report: {relative(path)}")
    fetched.demand_all(case.id, folder_option(options.folder))
    return ExitCode.OK if case.status == "completed" else ExitCode.CASE_FAILED
