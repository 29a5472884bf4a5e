"""Every key of a flow file: its values and its purpose. The parser and the JSON Schema both use these."""

from typing import Final

from mendflow.core.data.table_files import COLUMN_KINDS
from mendflow.core.model.platforms import MACHINES, SYSTEMS
from mendflow.formats.yaml.env_shapes import EnvironmentShape
from mendflow.formats.yaml.fields import Key, Table
from mendflow.formats.yaml.flow_hints import FOR_ALL_FAILURES, TYPES_ELSEWHERE
from mendflow.formats.yaml.job_hints import TITLE_AND_REST
from mendflow.formats.yaml.loop_hints import LISTS_OF_LOOPS
from mendflow.formats.yaml.shapes import (
    ChoiceShape,
    ConditionShape,
    DataShape,
    DeferredShape,
    Either,
    FlagShape,
    InstantShape,
    ListOf,
    MapOf,
    MeasureShape,
    NameShape,
    NumberShape,
    PresenceShape,
    ShellShape,
    TextShape,
)
from mendflow.formats.yaml.software_shapes import ModulesShape, SoftwareShape
from mendflow.formats.yaml.tolerance_shape import ToleranceShape

BODY: Final = DeferredShape("a command, a list of steps, or a map with a step or with `jobs:`", "body")
STEPS: Final = DeferredShape("a list of steps", "steps")
CONTAINER: Final = DeferredShape("an image, `none`, or a map with `image:`", "container")
JOBS: Final = DeferredShape("a map of jobs by name", "jobs")
ON_FAILURE: Final = Key(
    ChoiceShape("finish", "stop", hint=FOR_ALL_FAILURES),
    "When a job fails: `finish` lets jobs that do not need it run to their end, `stop` ends all at once.",
)
ON_UNHANDLED: Final = Key(
    ChoiceShape("fail", "hold"),
    "When something fails that no rule takes up: `fail` ends the case, `hold` keeps it open for a person.",
)
ENVIRONMENT: Final = EnvironmentShape()
WORDS_OF_DATA: Final = MapOf(TextShape("a text", template=False), expected="a map of texts")
VARIABLE: Final = NameShape("the name of a variable", variable=True)

COMMON: Final[Table] = {
    "if": Key(ConditionShape(), "Skip this unless the condition holds when it would start."),
    "for-each": Key(
        DeferredShape("a list, an expression that gives one, or a map such as `sample: [...]`", "for-each"),
        "Do this once for each element of a list; `${{ item }}` is the element, or `${{ sample }}` after "
        "`for-each: {sample: [...]}`, and `${{ index }}` its number from 0.",
    ),
    "on-failure": Key(
        BODY, "What to do when this has failed: a command, or steps; `${{ fault.message }}` says why. It stays failed."
    ),
    "compensation": Key(BODY, "How to undo this after it has completed: a command, steps, or `call:` with a worklet."),
}
IN_JOBS: Final[Table] = {
    "needs": Key(
        ListOf(
            TextShape("the name of a job", template=False),
            single=True,
            expected="the name of a job, or a list of names",
        ),
        "Jobs that must have completed before this one starts. Jobs whose results are used are needed anyway.",
    ),
    "after": Key(
        ListOf(
            TextShape("the name of a job", template=False),
            single=True,
            expected="the name of a job, or a list of names",
        ),
        "Jobs that must have ended before this one starts, however they ended.",
    ),
}
IN_STEPS: Final[Table] = {
    "name": Key(NameShape(), "The step's name; its results are `jobs.NAME`."),
}

RESOURCES: Final[Table] = {
    "cpus": Key(NumberShape(expression="template"), "How many CPUs the job needs; 1 unless given."),
    "memory": Key(
        MeasureShape("size", "template", positive=True, learned=True),
        "How much memory the job needs. It may not use more. `auto` has it learned, `auto up to 16 GB` within a bound.",
    ),
    "disk": Key(MeasureShape("size", "template"), "How much disk the job needs."),
    "gpus": Key(NumberShape(whole=True, expression="template"), "How many GPUs the job needs."),
    "time": Key(
        MeasureShape("duration", "template", positive=True, learned=True),
        "How long the job may take. It is ended when it takes longer. `auto` has it learned, `auto up to 4 h` within a "
        "bound.",
    ),
    "site": Key(TextShape("the name of a site"), "Run the job at this site only."),
    "hosts": Key(ListOf(TextShape("the name of a host"), single=True), "Run the job on one of these hosts only."),
    "system": Key(TextShape("the name of a system"), f"Run the job on this system only: {', '.join(SYSTEMS)}."),
    "machine": Key(
        TextShape("a kind of machine"),
        f"Run the job on this kind of machine only: {', '.join(MACHINES)}; x86 and arm mean all of their kind.",
    ),
}
DOMAIN: Final = Key(
    TextShape("the name of a domain, or any", template=False),
    "The domain that runs it: the name of a connected one, or `any` for the one that can do it best. Unless given, it "
    "stays in this one.",
)
JOB: Final[Table] = {
    **RESOURCES,
    "env": Key(ENVIRONMENT, "Environment variables of the job."),
    "environment": Key(
        SoftwareShape(),
        "The software that the job runs with, made once on each host: requirements.txt, uv.lock or a conda file beside "
        "the flow, a list of packages such as `[numpy==2.1]`, or a map such as `{requirements: tools.txt, python: "
        "3.12}`.",
    ),
    "modules": Key(ModulesShape(), "Environment modules of the cluster that are loaded before, such as `gcc/12.2`."),
    "secrets": Key(
        DataShape(),
        "Secrets that the job gets: `[api-token]`, `{TOKEN: api-token}`, or a file `{token.txt: {file: api-token}}`.",
    ),
    "limits": Key(
        DeferredShape("a map of limits", "limits"),
        "What the job may not exceed while it runs, and the named limits that it uses, such as `{licence-x: 1}`.",
    ),
    "priority": Key(
        NumberShape(whole=True, least=-1_000_000), "Jobs of a higher priority start first; 0 unless given."
    ),
    "owner": Key(TextShape("a name", template=False), "Whose job it is; searchable."),
    "expected": Key(MeasureShape("duration"), "How long the job usually takes."),
    "retries": Key(
        DeferredShape("a whole number, a map such as `{times: 4, wait: 1 s, on: 75}`, or a list of maps", "retries"),
        "How many times a failed attempt is made again, and no more, whatever the default rules would do: a number, a "
        "map with `times`, `wait`, `factor` and `on`, or a list of such maps.",
    ),
    "retry-wait": Key(
        MeasureShape("duration"),
        "How long to wait before a retry. Each further wait is twice as long.",
    ),
    "submit": Key(
        ChoiceShape("wait", "poll", "notify", "forget"),
        "How the job is submitted: wait (one blocking call), poll, notify (the default), or forget.",
    ),
    "stage-in": Key(ChoiceShape("parallel", "sequence"), "Whether input files are fetched in parallel or in order."),
    "link-inputs": Key(
        FlagShape(), "The job only reads its inputs: give it links into the pilot's cache instead of copies."
    ),
    "cache": Key(
        FlagShape(),
        "Whether an earlier result, made from the same, may be used instead of running the job. Unless given, it may "
        "if the job declares inputs and files.",
    ),
    "domain": DOMAIN,
    "container": Key(
        CONTAINER,
        "The image that the command runs in: `ubuntu:24.04`, `docker://ubuntu:24.04`, `/data/tools.sif`, or a map with "
        "`image`, `mounts`, `options` and `network`; `none` for no container.",
    ),
}
PUBLISHING: Final[Table] = {
    "as": Key(TextShape("a logical name"), "The logical name, such as /store/reco/run7.dat."),
    "on": Key(TextShape("the name of a storage element"), "Where it goes; the one near the pilot unless given."),
    "set": Key(TextShape("the name of a data set"), "The data set that it belongs to."),
    "to": Key(TextShape("a URL"), "Write it to this URL instead, such as file:///data/run7.dat."),
    "overwrite": Key(FlagShape(), "Whether an existing file at the URL may be replaced; true unless given."),
}
SHELL: Final[Table] = {
    "shell": Key(
        ShellShape(),
        "What runs the command: `bash` (bash -euo pipefail, the usual one), `sh` (sh -eu), `python`, or a template "
        "that is run as it is written, with {0} for the script's file.",
    ),
}
JOB_FILES: Final[Table] = {
    "inputs": Key(
        Either(
            MapOf(
                TextShape("a path, `lfn:NAME` or ${{ jobs.NAME.files.FILE }},"), expected="a map from paths to files"
            ),
            ListOf(TextShape("a path"), single=True, expected="paths"),
        ),
        "Files the job finds in its folder: the path there, and the file given, another job's file, or a logical file. "
        "A list of paths keeps them as they are. A given path may be a folder (`data/`) or a pattern (`*.csv`).",
    ),
    "replicas": Key(
        MapOf(ListOf(TextShape("a path or URL"), single=True), expected="a map from paths to places"),
        "Files that the pilot fetches itself: the path in the job's folder, and the places where it can be had, best "
        "first: URLs, or paths on the pilot's machine.",
    ),
    "files": Key(
        Either(
            MapOf(TextShape("a path"), NameShape("the name of a file"), "a map from names to paths"),
            ListOf(TextShape("a path"), single=True, expected="a path, or a list of paths"),
        ),
        "Files the job leaves: a name for each and its path in the job's folder; others use `jobs.NAME.files.FILE`. "
        "A folder (`results/`) or a pattern (`*.csv`) is the list of its files. Paths alone are their own names.",
    ),
    "publish": Key(
        DeferredShape("a map from names of files to logical names", "publications"),
        "Files the job leaves that get a logical name and go to a storage element: the name in `files`, and the "
        "logical name, or a map with `as:`, `on:` and `set:`; or, with `to:`, those that are taken to a URL.",
    ),
}
ON_MESSAGE: Final[Table] = {
    "channel": Key(TextShape("the name of a channel", template=False), "Where the message arrives.", required=True),
    "as": Key(VARIABLE, "The variable that holds the message; `message` unless given."),
    "match": Key(DataShape(), "Take only messages with this correlation."),
    "do": Key(BODY, "What to do with it.", required=True),
}
ON_ALARM: Final[Table] = {
    "after": Key(MeasureShape("duration", "expr"), "After this time."),
    "at": Key(InstantShape(), "At this moment."),
    "every": Key(MeasureShape("duration", "expr"), "Repeatedly, after each such time."),
    "do": Key(BODY, "What to do then.", required=True),
}
CATCH: Final[Table] = {
    "fault": Key(TextShape("the name of a fault", template=False), "The fault that is caught; all unless given."),
    "as": Key(VARIABLE, "The variable that holds the fault; `fault` unless given."),
    "do": Key(BODY, "What to do about it.", required=True),
}
MESSAGES: Final = Key(DeferredShape("a list of messages", "on-messages"), "What to do when messages arrive.")
ALARMS: Final = Key(DeferredShape("a list of alarms", "on-alarms"), "What to do when time has passed.")
PICK: Final[Table] = {"on-message": MESSAGES, "on-alarm": ALARMS}
BRANCH: Final[Table] = {
    "when": Key(ConditionShape(), "The condition of this branch."),
    "do": Key(BODY, "What to do if it holds."),
    "otherwise": Key(BODY, "What to do if no condition holds; the last branch."),
}
FOR_EACH: Final[Table] = {
    "items": Key(DataShape(), "The list, or an expression that gives it."),
    "from": Key(NumberShape(whole=True, expression="expr"), "The first number, instead of a list."),
    "to": Key(NumberShape(whole=True, expression="expr"), "The last number."),
    "as": Key(VARIABLE, "What the element is called; `item` unless given."),
    "in": Key(
        ChoiceShape("parallel", "sequence", hint=LISTS_OF_LOOPS), "Whether iterations run at once or one after another."
    ),
    "max-parallel": Key(NumberShape(whole=True, least=1), "How many iterations may run at a time."),
    "min-success": Key(
        NumberShape(whole=True, expression="expr"), "When this many iterations have succeeded, end the others."
    ),
    "min-ended": Key(
        NumberShape(whole=True, expression="expr"),
        "When this many iterations have ended, successful or not, end the others.",
    ),
    "zip": Key(
        FlagShape(), "Lists with names go side by side: the first of each, the second of each; they have one length."
    ),
    "tolerate": Key(
        ToleranceShape(),
        "How many iterations may fail, or what part of them (`10 %`). All run; of failed ones the results are null.",
    ),
    "on-failure": ON_FAILURE,
    "collect": Key(
        Either(
            MapOf(DataShape(), expected="a map of values"),
            ConditionShape("an expression (such as ${{ jobs.count.outputs.rows }})", anything=True),
        ),
        "What each iteration gives to the list `jobs.NAME.outputs`, an expression or a map of values; the job's "
        "outputs unless given.",
    ),
}
DO: Final = Key(BODY, "What to do.")

KINDS: Final[dict[str, tuple[Key, Table]]] = {
    "run": (
        Key(
            TextShape("a shell command", hint="several commands are lines of one text, under `run: |`"),
            "A shell command, or a script of several lines; it fails where it fails.",
        ),
        {**SHELL, **JOB_FILES, **JOB},
    ),
    "python": (
        Key(
            TextShape(
                "a function, as `file.py:function` or `module:function`,",
                template=False,
                pattern=r"^\S+:[A-Za-z_]\w*$",
                hint="a script is run by `run: python3 file.py` with `inputs: file.py`, a few lines by `shell: python`",
            ),
            "A Python function, as `file.py:function` or `module:function`.",
        ),
        {
            "with": Key(Either(MapOf(DataShape()), ListOf(DataShape())), "Its arguments: by name, or a list."),
            **JOB_FILES,
            **JOB,
        },
    ),
    "user-task": (
        Key(TextShape("a title", filled=True, hint=TITLE_AND_REST), "A person's work; this is its title."),
        {
            "role": Key(TextShape("the name of a role", template=False, filled=True), "Who may do it.", required=True),
            "description": Key(TextShape("a text"), "What is to be done."),
            "data": Key(DataShape(), "What the person is shown."),
            "fields": Key(WORDS_OF_DATA, "The outputs that are wanted, each with a description."),
            "deadline": Key(MeasureShape("duration", "expr"), "Within this time, or the fault `deadline` is thrown."),
        },
    ),
    "stage": (
        Key(
            MapOf(TextShape("a path or URL"), NameShape("the name of a file")),
            "Store files on the server: a name and a path each.",
        ),
        {
            "order": Key(ChoiceShape("parallel", "sequence"), "Together, or one after another."),
            "to": Key(
                DeferredShape(
                    "the name of a storage element, or a map from names of files to logical names", "targets"
                ),
                "Copy them to a storage element by a pilot instead: its name, where they keep their logical names, or "
                "for each file a logical name, or a map with `as:`, `on:` and `set:`.",
            ),
        },
    ),
    "call": (
        Key(TextShape("a flow file beside this one, or the name of a flow,", template=False), "Run another flow."),
        {
            "with": Key(MapOf(DataShape()), "Its inputs."),
            "domain": DOMAIN,
        },
    ),
    "select": (
        Key(PresenceShape(), "Run the flow that the rules choose."),
        {"with": Key(MapOf(DataShape()), "Its inputs.")},
    ),
    "set": (Key(MapOf(DataShape()), "Give variables new values; `totals.rows` and `list[0]` are parts of one."), {}),
    "wait": (Key(MeasureShape("duration", "expr"), "Wait this long."), {}),
    "wait-until": (Key(InstantShape(), "Wait for this moment."), {}),
    "throw": (
        Key(NameShape("the name of a fault"), "Throw a fault."),
        {
            "message": Key(TextShape("a sentence"), "What went wrong."),
            "data": Key(DataShape(), "Data that goes with the fault."),
        },
    ),
    "rethrow": (Key(PresenceShape(), "Throw the caught fault again."), {}),
    "compensate": (
        Key(
            NameShape("`all`, or the name of a scope"), "Undo what scopes inside have done: `all`, or one by its name."
        ),
        {},
    ),
    "receive": (
        Key(NameShape("the name of a channel"), "Wait for a message of this channel."),
        {
            "as": Key(VARIABLE, "The variable that holds the message."),
            "match": Key(DataShape(), "Take only messages with this correlation."),
        },
    ),
    "reply": (
        Key(NameShape("the name of a channel"), "Answer the message that was received."),
        {
            "value": Key(DataShape(), "The answer."),
            "fault": Key(TextShape("the name of a fault", template=False), "Answer with a fault instead."),
        },
    ),
    "pick": (
        Key(DeferredShape("a map with `on-message:` and `on-alarm:`", "pick"), "The first of several events."),
        {},
    ),
    "invoke": (
        Key(TextShape("the name of a partner", template=False), "Call a partner."),
        {
            "operation": Key(
                TextShape("the name of an operation", template=False), "What it is asked to do.", required=True
            ),
            "value": Key(DataShape(), "What it is given."),
            "as": Key(VARIABLE, "Wait for its answer and keep it in this variable."),
        },
    ),
    "exit": (Key(PresenceShape(), "End the case at once."), {}),
    "empty": (Key(PresenceShape(), "Do nothing."), {}),
    "steps": (Key(STEPS, "Steps, one after another."), {}),
    "jobs": (Key(JOBS, "Jobs, at once where `needs` allows."), {"on-failure": ON_FAILURE}),
    "parallel": (Key(STEPS, "Steps, all at once."), {"on-failure": ON_FAILURE}),
    "do": (DO, {}),
    "choose": (Key(DeferredShape("a list of branches", "branches"), "The first branch whose condition holds."), {}),
    "choose-many": (
        Key(DeferredShape("a list of branches", "branches"), "All branches whose conditions hold, at once."),
        {},
    ),
    "while": (Key(ConditionShape(), "Repeat as long as this holds."), {"do": DO}),
    "until": (Key(ConditionShape(), "Repeat until this holds."), {"do": DO}),
    "scope": (
        Key(BODY, "A part of the flow with variables and handlers of its own."),
        {
            "variables": Key(MapOf(DataShape(), VARIABLE), "Variables and their first values."),
            "catch": Key(DeferredShape("a list of handlers", "catches"), "What to do about faults inside."),
            "undo": Key(BODY, "How to compensate the scope after it has completed."),
            "on-terminate": Key(BODY, "What to do when the scope is ended from outside."),
            "on-message": MESSAGES,
            "on-alarm": ALARMS,
            "isolated": Key(FlagShape(), "Isolated scopes do not run at the same time."),
        },
    ),
}
"""Each kind of step, by the key that makes it one, with the keys that go with it."""

INPUT: Final[Table] = {
    "type": Key(
        ChoiceShape("string", "number", "boolean", "list", "map", "table", "file", "files", elsewhere=TYPES_ELSEWHERE),
        "What the input must be.",
    ),
    "description": Key(TextShape(template=False, prose=True), "What it is for."),
    "default": Key(DataShape(), "Its value unless one is given. Without a default the input is required."),
    "columns": Key(
        MapOf(ChoiceShape(*COLUMN_KINDS, elsewhere=TYPES_ELSEWHERE), expected="a map from columns to types"),
        "What is in columns of a table: `string`, `number`, `boolean` or `file`, whose paths are relative to the "
        "table. All others of CSV and TSV are texts.",
    ),
}
DEFAULTS: Final[Table] = {**SHELL, **JOB}
FLOW: Final[Table] = {
    "name": Key(NameShape(), "The flow's name; the file's name unless given."),
    "description": Key(TextShape(template=False, prose=True), "What the flow is for."),
    "inputs": Key(
        DeferredShape("a map of inputs", "inputs"),
        "What the flow is given: a map with `type` and `default` each, or just the default. `${{ inputs.NAME }}`.",
    ),
    "env": Key(ENVIRONMENT, "Environment variables of all jobs."),
    "shell": Key(ShellShape(), "What runs the commands of all jobs; `bash` unless given. See the key of a job."),
    "container": Key(CONTAINER, "The image that the commands of all jobs run in. See the key of a job."),
    "defaults": Key(
        DeferredShape("a map of a job's keys", "defaults"), "What holds for every job that does not say otherwise."
    ),
    "on-failure": ON_FAILURE,
    "on-unhandled": ON_UNHANDLED,
    "on": Key(
        DeferredShape("a map with `files:`, `failure:`, `success:` or `finished:`", "on"),
        "What happens by itself once the flow is deployed: files that arrive start cases, and ends of cases are told.",
    ),
    "variables": Key(MapOf(DataShape(), VARIABLE), "Variables of the flow and their first values."),
    "jobs": Key(JOBS, "Jobs, at once where `needs` allows."),
    "steps": Key(STEPS, "Steps, one after another."),
    "outputs": Key(MapOf(DataShape()), "What the flow returns when it has completed."),
}
