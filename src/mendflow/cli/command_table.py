"""Which command is in which module. A module is loaded only when its command is used, so that `mendflow --help` and
`mendflow check` start fast."""

from typing import Final, NamedTuple


class CommandEntry(NamedTuple):
    module: str
    help: str
    panel: str


_RUN, _SEE, _STEER = "Run flows", "See cases and their jobs", "Start and steer cases"
_MEND, _DATA, _SERVE = "Repair cases", "Data", "Servers and pilots"


def _entry(module: str, help: str, panel: str) -> CommandEntry:
    return CommandEntry(f"mendflow.cli.{module}", help, panel)


COMMANDS: dict[str, CommandEntry] = {
    "run": _entry("run", "Run a flow on this machine and show its progress.", _RUN),
    "resume": _entry("run", "Resume a case that was suspended or stopped, or one suspended item.", _RUN),
    "rerun": _entry("rerun", "Run a case again; results of unchanged jobs come from the cache.", _RUN),
    "check": _entry("check", "Report every problem of the flow files, or of files with an exlet.", _RUN),
    "flows": _entry("flows", "List the deployed flows; show, deploy, remove, draw or convert one.", _RUN),
    "sim": _entry("sim", "Predict what a flow would take, by playing it in virtual time.", _RUN),
    "cases": _entry("lists", "List the cases, newest first.", _SEE),
    "items": _entry("lists", "List the items of a case, in the order in which they last began.", _SEE),
    "jobs": _entry("lists", "List jobs, by case, state, name, owner or pilot, or by any condition.", _SEE),
    "why": _entry("inspection", "Say why a case, item, job, pilot or schedule is in its state.", _SEE),
    "logs": _entry("job_logs", "Show what a job printed.", _SEE),
    "shell": _entry("job_logs", "Open a shell in the folder of a failed attempt, with its environment.", _SEE),
    "watch": _entry("inspection", "Show the progress of a case until it ends.", _SEE),
    "history": _entry("repairs", "List everything that happened in a case, repairs included.", _SEE),
    "report": _entry("inspection", "Write the HTML report of a case.", _SEE),
    "ui": _entry("ui", "Open the web app in a browser, signed in.", _SEE),
    "failures": _entry("failures", "List failures by their cause, and what was done about them.", _SEE),
    "start": _entry("start", "Start a case of a deployed flow, or of a flow file.", _STEER),
    "suspend": _entry("case_actions", "Suspend a case or one of its items.", _STEER),
    "cancel": _entry("case_actions", "End a case or one of its items; its remaining jobs do not run.", _STEER),
    "schedules": _entry(
        "schedules", "List the schedules that start cases by the clock; add, pause or backfill one.", _STEER
    ),
    "send": _entry("case_actions", "Send a message to a case.", _STEER),
    "worklist": _entry("worklist", "List the user tasks that wait; claim, complete or reject one.", _STEER),
    "rules": _entry("rules", "List the rules; add, try, export, import or restore them.", _MEND),
    "proposals": _entry("proposals", "List the rules that past failures suggest; show, adopt or dismiss one.", _MEND),
    "learn": _entry("main", "What was learned: sizes of jobs, and what failures, over-asking and waits cost.", _MEND),
    "mend": _entry("repairs", "Run an exlet on a case now, and optionally make it a rule.", _MEND),
    "data": _entry("main", "Logical files, storage elements, data sets and watched folders.", _DATA),
    "cache": _entry("results", "List the results that can be used again; show or drop some.", _DATA),
    "prune": _entry(
        "prune", "Remove cases that are over, by name, age, number, size, state or flow; set rules.", _DATA
    ),
    "limits": _entry("limits", "List the named limits, and the jobs that use them; set or remove one.", _SERVE),
    "secrets": _entry("secrets", "List the secrets that jobs can use, not their values; set or remove one.", _SERVE),
    "serve": _entry("serve", "Run a server.", _SERVE),
    "pilot": _entry("pilot", "Run a pilot that takes jobs from a server.", _SERVE),
    "domains": _entry("domains", "List the connected domains; show, invite, connect or disconnect one.", _SERVE),
    "alerts": _entry("alerts", "List alerts by severity; acknowledge one.", _SERVE),
    "admin": _entry(
        "main", "Servers, pilots, running jobs, sites, notifications, archives, tokens, projects, who did what.", _SERVE
    ),
}

GROUPS: Final[dict[str, dict[str, CommandEntry]]] = {
    "data": {
        "files": _entry("data_files", "List the logical files; add, show, locate or remove one.", ""),
        "sets": _entry("data_sets", "List the data sets; create one, add files, close it.", ""),
        "storage": _entry("data_storage", "List the storage elements; add, show or remove one.", ""),
        "watch": _entry("data_watch", "List the folders that are watched for new files; add or remove one.", ""),
    },
    "learn": {
        "report": _entry(
            "learn",
            "Report what failed attempts, over-asking and waits cost, and what adopted proposals have saved.",
            "",
        ),
        "sizes": _entry("learn_sizes", "List what jobs asked for and used, and what they would ask for now.", ""),
        "settings": _entry("learn", "Show what is adopted by itself, or change it.", ""),
    },
    "admin": {
        "doctor": _entry(
            "doctor", "Look at store, disk, clock, permissions, versions, ports and the server, and say what to do.", ""
        ),
        "servers": _entry("lists", "List the servers on the store.", ""),
        "pilots": _entry("lists", "List the pilots.", ""),
        "top": _entry("top", "Show all servers live: queue, running jobs, rates, latencies, repairs and alerts.", ""),
        "requeue": _entry("alerts", "Take a running job from its pilot and put it back into the queue.", ""),
        "sites": _entry("sites", "List the sites that pilots are submitted to; add, pause or remove one.", ""),
        "notifications": _entry("webhooks", "List the notifications: ends of cases, and alerts.", ""),
        "webhooks": _entry(
            "webhooks", "List the webhooks that notifications are sent to; add, remove or test one.", ""
        ),
        "export": _entry("archive", "Write cases into an archive, with their journals and files.", ""),
        "import": _entry("archive", "Import the cases of an archive, all of them or none.", ""),
        "backup": _entry("backup", "Copy the whole store as it is now, with its files; servers go on working.", ""),
        "restore": _entry(
            "backup", "Make a store of a backup: in a data folder without one, or in an empty database.", ""
        ),
        "tokens": _entry(
            "tokens", "List the tokens in the store, never the tokens themselves; create or revoke one.", ""
        ),
        "projects": _entry(
            "projects",
            "List the projects: weights, shares, quotas and what is used; set or remove what holds for one.",
            "",
        ),
        "audit": _entry("audit", "List who did what, the newest first; verify that record, or export it.", ""),
        "completion": _entry("setup", "Print the completion script of a shell.", ""),
    },
}
"""Groups whose commands are in several modules, also loaded on use."""

ELSEWHERE: Final[dict[str, str]] = {
    "abort": "to end a case: mendflow cancel CASE",
    "adapt": "to put interceptors into a BPEL process: mendflow flows adapt FILE.bpel",
    "backfill": "to start cases for past times: mendflow schedules backfill SCHEDULE --from DATE --to DATE",
    "clean": "to remove cases that are over: mendflow prune --older-than 30d; to drop results: mendflow cache drop",
    "continue": "to resume a suspended or stopped case: mendflow resume CASE",
    "convert": "to write a flow as BPEL or JSDL: mendflow flows convert FLOW",
    "dag": "to draw a flow: mendflow flows graph FLOW",
    "cleanup": "to remove cases that are over: mendflow prune --older-than 30d; to drop results: mendflow cache drop",
    "cron": "to start cases by the clock: mendflow schedules add NAME FLOW --cron '30 2 * * *'",
    "config": "nothing has to be set up; what jobs need stands in the flow, and mendflow run --help has the options",
    "connections": "to list the storage elements: mendflow data storage; passwords and tokens: mendflow secrets",
    "dags": "to list the deployed flows: mendflow flows",
    "db": "nothing has to be set up: the data are in .mendflow; another store: MENDFLOW_STORE",
    "delete": "to end a case: mendflow cancel CASE; to remove cases that are over: mendflow prune",
    "describe": "to say why a case is in its state: mendflow why CASE; to list its items: mendflow items CASE",
    "deploy": "to deploy a flow: mendflow flows deploy FLOW",
    "errors": "to list failures by their cause: mendflow failures",
    "exec": "to run a flow here: mendflow run FLOW",
    "export": "to write cases into an archive: mendflow admin export",
    "graph": "to draw a flow: mendflow flows graph FLOW",
    "import": "to read the cases of an archive: mendflow admin import",
    "info": "to say why a case is in its state: mendflow why CASE; to list its items: mendflow items CASE",
    "init": "nothing has to be set up; to print a flow to begin with: mendflow flows init > FLOW.yaml",
    "inspect": "to say why a case is in its state: mendflow why CASE; to list its items: mendflow items CASE",
    "kill": "to end a case: mendflow cancel CASE; one of its items: mendflow cancel CASE:ITEM",
    "lint": "to report the problems of a flow file: mendflow check FLOW",
    "list": "to list the cases: mendflow cases",
    "log": "to show what a job printed: mendflow logs JOB",
    "ls": "to list the cases: mendflow cases",
    "monitor": "to watch a case: mendflow watch CASE; all servers: mendflow admin top",
    "new": "to print a flow to begin with: mendflow flows init > FLOW.yaml",
    "nodes": "to list the pilots: mendflow admin pilots",
    "notices": "to list what an administrator should know: mendflow alerts",
    "pause": "to suspend a case: mendflow suspend CASE; to pause a schedule: mendflow schedules pause SCHEDULE",
    "pilots": "to list the pilots: mendflow admin pilots",
    "pools": "to list the named limits of jobs: mendflow limits; to set one: mendflow limits set NAME COUNT",
    "projects": "to list the projects, their shares and quotas: mendflow admin projects",
    "ps": "to list the jobs that run: mendflow jobs --state running",
    "quota": "to list the quotas of projects: mendflow admin projects; to set some: mendflow admin projects set NAME",
    "quotas": "to list the quotas of projects: mendflow admin projects; to set some: mendflow admin projects set NAME",
    "raise": "to raise an exception that rules take up: mendflow rules raise CASE TRIGGER",
    "queue": "to list the jobs that wait: mendflow jobs --state waiting",
    "requeue": "to put a running job back into the queue: mendflow admin requeue JOB",
    "release": "to put a running job back into the queue: mendflow admin requeue JOB",
    "remove": "to end a case: mendflow cancel CASE",
    "restart": "to run a case again: mendflow rerun CASE; to continue one that was stopped: mendflow resume CASE",
    "retry": "to run what failed: mendflow rerun CASE --from-failed; a job and what depends on it: mendflow rerun CASE"
    " --again JOB; to take a running job from its pilot: mendflow admin requeue JOB",
    "rm": "to end a case: mendflow cancel CASE",
    "rule": "to list the rules: mendflow rules; one set: mendflow rules show SET",
    "runs": "to list the cases: mendflow cases",
    "sacct": "to list the jobs: mendflow jobs",
    "sbatch": "to start a case on a server: mendflow start FLOW",
    "scancel": "to end a case: mendflow cancel CASE",
    "schedule": "to list the schedules: mendflow schedules",
    "scheduler": "to run a server: mendflow serve",
    "sshare": "to list what projects have used of their shares: mendflow admin projects",
    "server": "to run a server: mendflow serve",
    "servers": "to list the servers: mendflow admin servers",
    "show": "to say why a case is in its state: mendflow why CASE",
    "signal": "to send a message to a case: mendflow send CASE CHANNEL",
    "sites": "to list the sites: mendflow admin sites",
    "squeue": "to list the jobs that wait: mendflow jobs --state waiting",
    "status": "to list the cases and their states: mendflow cases; one case: mendflow why CASE",
    "stop": "to end a case: mendflow cancel CASE; to hold it for a while: mendflow suspend CASE",
    "standalone": "to run a server with its own pilot: mendflow serve --jobs 4; one flow: mendflow run FLOW",
    "state": "to list the cases and their states: mendflow cases; one case: mendflow why CASE",
    "submit": "to start a case on a server: mendflow start FLOW; to run a flow here: mendflow run FLOW",
    "tail": "to see what a job prints: mendflow logs -f JOB",
    "task": "to list the user tasks: mendflow worklist; the items of a case: mendflow items CASE",
    "tasks": "to list the user tasks: mendflow worklist; the items of a case: mendflow items CASE",
    "terminate": "to end a case: mendflow cancel CASE",
    "test": "to see what a run would do: mendflow run FLOW --dry-run; the problems of a file: mendflow check FLOW",
    "token": "to list the tokens: mendflow admin tokens; to make one: mendflow admin tokens create NAME",
    "tokens": "to list the tokens: mendflow admin tokens; to make one: mendflow admin tokens create NAME",
    "top": "to watch all servers: mendflow admin top",
    "trigger": "to start a case: mendflow start FLOW; of a schedule: mendflow schedules trigger SCHEDULE; to raise"
    " an exception: mendflow rules raise CASE TRIGGER",
    "unlock": "nothing stays locked after a crash; to continue a case: mendflow resume CASE",
    "validate": "to report the problems of a flow file: mendflow check FLOW",
    "variables": "what a flow is given is an input: mendflow run FLOW --input NAME=VALUE",
    "view": "to list the items of a case: mendflow items CASE; its page: mendflow report CASE",
    "wait": "to wait for a case: mendflow watch CASE",
    "web": "to open the web app: mendflow ui; to run a server: mendflow serve",
    "webserver": "to run a server: mendflow serve; to open the web app: mendflow ui",
    "worker": "to run a pilot: mendflow pilot --server URL",
    "workers": "to list the pilots: mendflow admin pilots",
}
"""Words of other tools, and commands of ours that are in a group: what to type instead."""
