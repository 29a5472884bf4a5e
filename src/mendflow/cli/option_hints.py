"""Options of other tools, and what to type instead. The parser's error stays for everything that is not here."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

import typer

from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import lazy_pattern

UsageError: Final[Any] = typer.BadParameter.__base__
EXTRA: Final = lazy_pattern(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")


FLOW_FILES: Final = (".yaml", ".yml", ".py", ".bpel", ".jsdl")
FILES_SHOWN: Final = 5
CLOSE: Final = 0.82
LONG_WORD: Final = lazy_pattern(r"-[a-z][a-z-]{2,}")


def _hints(*groups: tuple[str, str]) -> dict[str, str]:
    return {word: sentence for words, sentence in groups for word in words.split()}


_GIVEN: Final = "what a flow is given is --input NAME=VALUE, or --inputs FILE"
_AGAIN: Final = (
    "jobs whose results are known are not run again anyway, and --cached uses earlier results of all jobs; "
    "mendflow rerun CASE runs a case again, and mendflow resume CASE goes on with one that was stopped"
)
_WHOLE: Final = (
    "a run does the whole flow, and takes what is known from the cache; `if:` in the flow leaves a job out, and"
    " --again JOB runs one and all that depends on it"
)
_SITES: Final = "a cluster is a site of a server: mendflow admin sites add there, and --server URL here"
_MORE: Final = (
    "mendflow watch CASE, mendflow history CASE and mendflow logs JOB show more; MENDFLOW_DEBUG=1 shows tracebacks"
)

RUN: Final[dict[str, str]] = _hints(
    (
        "--force -f -R --forcerun --rerun-job --clear",
        "--again JOB runs one job and all that depends on it, and --no-cache runs every job",
    ),
    ("-F --forceall --force-all --fresh", "--no-cache runs every job"),
    ("--from --from-job --start-from --start-at", "--again JOB runs a job and all that depends on it"),
    (
        "--keep-going -k --continue-on-error",
        "jobs that do not need a failed one run to their end anyway; leave it out",
    ),
    ("--fail-fast --exit-on-error -x", "`on-failure: stop` in the flow ends all jobs when one has failed"),
    (
        "--cores -c --threads -t --parallel --max-jobs --workers --max-workers --cpus --processes --max-parallel",
        "how many jobs run at a time is -j N",
    ),
    (
        "--rerun-incomplete --ri --keep-incomplete",
        "no half-made result is ever used; a case that was stopped or killed goes on by mendflow resume CASE, or when"
        " the same flow is run again",
    ),
    ("--rerun --restart --resume -r --continue --reuse --cache", _AGAIN),
    ("-v --verbose --debug --log-level -d -V", _MORE),
    ("--params --param --params-file --config --configfile --conf --set --var -P -e --arg --args -C -a", _GIVEN),
    ("-s --snakefile --file", "the flow file is given without an option: mendflow run FLOW"),
    ("--profile --executor --slurm --cluster --batch-system --queue --partition", _SITES),
    (
        "--until --target --targets --only --job --step --task --omit-from --exclude --skip -T",
        _WHOLE,
    ),
    ("--dag --rulegraph --graph --plot", "mendflow flows graph FLOW draws it"),
    ("--lint --validate --check --syntax-check", "mendflow check FLOW reports every problem"),
    ("--retries --retry --max-retries --restart-times", "retries stand in the flow: `defaults: {retries: 3}`"),
    ("--timeout --time --walltime", "how long jobs may take stands in the flow: `defaults: {time: 1 h}`"),
    ("--memory --mem --resources --default-resources --gpus", "what jobs need stands in the flow: `memory: 2 GB`"),
    (
        "--detach --background -b --bg --daemon --no-wait",
        "mendflow serve runs a server, and mendflow start FLOW leaves the case to it",
    ),
    ("--output -o --outdir --out --output-directory -O", "where output files go is --output-dir DIR"),
    (
        "--work-dir -w --workdir --directory --cwd",
        "it runs for the present folder; where its data are kept is --data-dir",
    ),
    ("-p --printshellcmds --print", "--dry-run shows the commands"),
    ("--email --mail", "who is told of the end is --notify ADDRESS"),
    ("--watch --follow", "mendflow run shows the case until it ends"),
    ("--name --run-name", "the name of a flow is `name:` in its file"),
    ("--unlock --nolock", "nothing is locked after a crash; mendflow resume goes on"),
    ("--clean --cleanup --delete", "a job's folder is removed when it has ended, unless --keep is given"),
    ("--yes -y", "nothing is asked; leave it out"),
    ("--with-report --report-file --html", "the page of the case is written anyway; where is --report FILE"),
    (
        "--with-trace --with-timeline --stats --benchmark --trace",
        "mendflow items CASE lists what each job took, and the page that mendflow report writes has a timeline",
    ),
    ("--with-dag", "mendflow flows graph FLOW draws it"),
    (
        "--with-docker --with-singularity --with-apptainer --with-podman --use-singularity --use-apptainer --docker"
        " --container --image",
        "the image that jobs run in stands in the flow: `container: ubuntu:24.04` at a job, or at the top for all",
    ),
    (
        "--with-conda --use-conda --sdm --conda --software-deployment-method --use-envmodules",
        "say it at the job: `environment: env.yaml`",
    ),
    ("--entry --dag-id --pipeline", "one of several flows of a Python file is mendflow run FILE.py:NAME"),
    ("--stub --stub-run --dryrun --dry --preview --plan", "--dry-run says what would run and why"),
    ("--touch --mark-done", "a result is found by what it was made from; files are never marked as made"),
    ("--latency-wait", "files are handed on by mendflow itself; there is nothing to wait for"),
    ("--ansi-log --progress --no-progress --silent", "progress is not shown with --quiet"),
    ("--subdir --exec-date --logical-date", "what a flow is given, a date too, is --input NAME=VALUE"),
)
"""For `run`, and for those that are like it."""

ANYWHERE: Final[dict[str, str]] = _hints(
    ("-v --verbose --debug --log-level", _MORE),
    ("--all -a", "all are listed, up to --limit N"),
    ("-n --tail --lines --head --max", "how many are shown is --limit N"),
    ("--failed", "those that failed are --state failed, of cases --status failed"),
    ("--running", "those that run are --state running, of cases --status running"),
    ("--format --output -o", "--json prints everything, for programs"),
    ("--yes -y --force -f", "nothing is asked; leave it out"),
    ("--follow -f --watch -w", "mendflow watch CASE shows a case until it ends, and mendflow logs -f JOB a job"),
    ("--host --url --api -H", "the server is --server URL"),
    ("--token --password", "a token is given by MENDFLOW_TOKEN or --token-file FILE"),
)
OF_COMMANDS: Final[dict[str, dict[str, str]]] = {
    "run": RUN,
    "start": {
        "-n": "mendflow run FLOW --dry-run says what would run",
        "--dry-run": "mendflow run FLOW --dry-run says what would run",
        "--jobs": "how many jobs run at a time is said by the pilots of the server",
        "-j": "how many jobs run at a time is said by the pilots of the server",
    }
    | RUN,
    "rerun": {
        "--cached": "results of unchanged jobs come from the cache anyway",
        "--dry-run": "mendflow run FLOW --dry-run says what would run",
        "--input": "a rerun has the inputs of its case; mendflow run FLOW --input NAME=VALUE takes others",
        "-i": "a rerun has the inputs of its case; mendflow run FLOW --input NAME=VALUE takes others",
        "--failed": "--from-failed runs what did not succeed",
    }
    | {word: hint for word, hint in RUN.items() if word not in ("--yes", "-y")},
    "logs": {
        **dict.fromkeys(("--tail", "-n", "--lines"), "mendflow logs JOB | tail -n 20 shows the last lines"),
        **dict.fromkeys(("--stderr", "--stdout", "--err"), "what a job prints is kept in one log, in its order"),
    },
    "secrets set": dict.fromkeys(("--value", "-v", "--secret"), "mendflow secrets set NAME asks for the value"),
    "schedules add": {
        **dict.fromkeys(("--tz", "--time-zone", "--zone"), "the time zone is --timezone ZONE, as Europe/Berlin"),
    },
    "check": {
        "--strict": "every problem is reported anyway; leave it out",
        "--input": "mendflow run FLOW --dry-run checks inputs too",
        "-i": "mendflow run FLOW --dry-run checks inputs too",
    },
}


_INVITED: Final = (
    "two domains are connected by an invitation: mendflow domains invite NAME on a server of one, and mendflow domains"
    " connect NAME URL --invitation FILE on a server of the other"
)
_NO_VALUE: Final = (
    "the value of a secret is never given on the command line, where others could see it: mendflow secrets set NAME"
    " asks for it, or reads it from standard input, and --file FILE from a file"
)
REMOVING: Final = ("rm", "remove", "delete", "del", "prune")
_PRUNED: Final = (
    "mendflow prune removes cases that are over by their age, number, size, state or flow, not one by its name:"
    " mendflow prune --older-than 30d --dry-run says which"
)
COMMANDS_IN_GROUPS: Final[dict[str, dict[str, str]]] = {
    "prune": _hints(("last case cases all rm remove delete", _PRUNED)),
    "domains": _hints(
        ("add create join link new register peer federate", _INVITED),
        ("remove delete rm drop leave unlink", "to end a connection: mendflow domains disconnect NAME"),
    ),
}
"""Words that are guessed as commands of a group."""


def with_option_hints(command: Any) -> Any:
    """The command, which answers options of other tools, and those inside it if it is a group."""
    parse = command.parse_args

    def parse_args(ctx: Any, args: list[str]) -> Any:
        given = list(args)
        try:
            return parse(ctx, args)
        except UsageError as error:
            _answer(error, ctx, given)

    command.parse_args = parse_args
    if hasattr(command, "resolve_command"):
        _answer_commands(command)
    for inner in getattr(command, "commands", {}).values():
        with_option_hints(inner)
    return command


def _answer_commands(group: Any) -> None:
    """Let the group answer words that are guessed as its commands."""
    resolve = group.resolve_command

    def resolve_command(ctx: Any, args: list[str]) -> Any:
        name, word = str(ctx.command_path).removeprefix("mendflow "), args[0] if args else ""
        if word not in group.commands and (hint := COMMANDS_IN_GROUPS.get(name, {}).get(word)):
            raise InvalidRequest(f"{name} has no command `{word}`; {hint}")
        return resolve(ctx, args)

    group.resolve_command = resolve_command


def _answer(error: Any, ctx: Any, given: list[str]) -> NoReturn:
    """Raise an error that says what to type, or the parser's own."""
    name = str(ctx.command_path).removeprefix("mendflow ")  # of the command, as it is typed
    word = getattr(error, "option_name", "") if type(error).__name__ == "NoSuchOption" else ""
    if long := _long_word(word, given):
        own = {each for param in ctx.command.params for each in param.opts}
        hint = f"options of several letters have two dashes: -{long}" if f"-{long}" in own else ""
        if hint := hint or option_hint(name, f"-{long}"):
            raise InvalidRequest(f"{name} has no option {long}; {hint}") from error
        raise InvalidRequest(f"{name} has no option {long}; {_guess(name, f'-{long}', error)}") from error
    if hint := option_hint(name, word) or (_guess(name, word, error) if word else ""):
        raise InvalidRequest(f"{name} has no option {word}; {hint}") from error
    if type(error).__name__ == "MissingParameter":
        raise InvalidRequest(_missing_text(name, error)) from error
    if found := EXTRA.search(str(error)):
        extra = found[1].split()
        if name in ("run", "start") and all("=" in each for each in extra):
            wanted = " ".join(f"--input {each}" for each in extra)
            raise InvalidRequest(f"inputs have an option before them: mendflow {name} FLOW {wanted}") from error
        if name == "secrets set":
            raise InvalidRequest(_NO_VALUE) from None
        if name == "cases" and extra[0] in REMOVING:
            raise InvalidRequest(f"cases has no command `{extra[0]}`; {_PRUNED}") from error
        if name == "run":
            raise InvalidRequest(f"run takes one flow file, and {found[1]} is too much; {_WHOLE}") from error
        if name == "worklist complete" and all("=" in each for each in extra):
            wanted = " ".join(f"-o {each}" for each in extra)
            raise InvalidRequest(f"outputs have an option before them: mendflow {name} TASK {wanted}") from error
    raise error


def _guess(command: str, word: str, error: Any) -> str:
    """What an option that nobody knows may have meant: one that is written nearly so, or an input of the flow."""
    near = get_close_matches(word, getattr(error, "possibilities", None) or (), n=1, cutoff=CLOSE)
    if near:
        return f"did you mean {near[0]}?"
    if command in ("run", "start") and word.startswith("--"):
        return f"an input of the flow is --input {word[2:].replace('-', '_')}=VALUE; mendflow {command} --help has all"
    return f"mendflow {command} --help has those there are"


def _missing_text(command: str, error: Any) -> str:
    """What a command wants that was not given."""
    wants = str(getattr(error.param, "metavar", "") or error.param.human_readable_name)
    if wants.rstrip(".") == "FLOW":
        files = sorted(each.name for each in Path.cwd().glob("*") if each.name.endswith(FLOW_FILES))
        here = f"; here is {', '.join(files[:FILES_SHOWN])}" if files else ""
        return f"{command} wants a flow file: mendflow {command} FLOW{here}"
    if wants == "CASE":
        return f"{command} wants a case: mendflow {command} CASE; `last` is the newest, mendflow cases lists them"
    return f"{command} wants {wants}: mendflow {command} --help says what that is"


def _long_word(word: str, given: list[str]) -> str:
    """The word of several letters behind one dash, as other tools write them, of which the parser named one letter."""
    if len(word) != 2:
        return ""
    return next((each for each in given if LONG_WORD.fullmatch(each) and word[1] in each), "")


def option_hint(command: str, word: str) -> str:
    """What to type instead of an option that the command does not have; empty if that is not known."""
    return OF_COMMANDS.get(command, {}).get(word) or ANYWHERE.get(word, "") if word else ""
