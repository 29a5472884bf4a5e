"""Which command lives in which module. Modules are loaded when their command is used, so that `mendflow --help` and
`mendflow check` do not wait for machinery that they do not need."""

from typing import NamedTuple


class Entry(NamedTuple):
    module: str
    help: str
    panel: str


_RUN, _LOOK, _ACT, _MEND = "Run flows here", "Look", "Act", "Mend"
_SERVE, _ELSE = "Servers and pilots", "And"


def _entry(module: str, help: str, panel: str) -> Entry:
    return Entry(f"mendflow.cli.{module}", help, panel)


COMMANDS: dict[str, Entry] = {
    "run": _entry("run", "Run a flow on this machine and show how it goes.", _RUN),
    "resume": _entry("run", "Go on with a case that was stopped.", _RUN),
    "rerun": _entry("run", "Run a case again; unchanged completed jobs are taken over.", _RUN),
    "check": _entry("check", "Report every problem of the flow files at once.", _RUN),
    "graph": _entry("graph", "Draw a flow: its jobs, and what waits for what.", _RUN),
    "adapt": _entry("adapting", "Put interceptors of the proxy at the invokes of a BPEL process.", _RUN),
    "convert": _entry("converting", "Write a flow as a BPEL process, or a flow of one job in JSDL.", _RUN),
    "schema": _entry("check", "Print the JSON Schema of flow files, for editors.", _RUN),
    "sim": _entry("sim", "Play flows in virtual time: what one would take, and the paper's experiments.", _RUN),
    "cases": _entry("lists", "List the cases, newest first.", _LOOK),
    "items": _entry("lists", "List the items of a case, in the order in which they last began.", _LOOK),
    "jobs": _entry("lists", "List jobs, by case, state, name, owner or pilot, or by any condition.", _LOOK),
    "flows": _entry("lists", "List the deployed flows.", _LOOK),
    "pilots": _entry("lists", "List the pilots.", _LOOK),
    "servers": _entry("lists", "List the servers on the store.", _LOOK),
    "top": _entry("top", "Show all servers live: queue, running jobs, rates, latencies, repairs and alerts.", _LOOK),
    "alerts": _entry("alerts", "List what somebody should look at; acknowledge it.", _LOOK),
    "notifications": _entry("webhooks", "List what clients were told: ends of cases, and alerts.", _LOOK),
    "data": _entry("data", "List the logical files; add, show, find or forget one.", _LOOK),
    "notices": _entry("lists", "List what an administrator should know.", _LOOK),
    "failures": _entry("failures", "List failures by their cause, and who took care of them.", _LOOK),
    "history": _entry("repairs", "Tell all that happened in a case, repairs included.", _LOOK),
    "why": _entry("look", "Say why a case, item, job or pilot is as it is.", _LOOK),
    "logs": _entry("look", "Show what a job printed.", _LOOK),
    "watch": _entry("look", "Show how a case goes, until it ends.", _LOOK),
    "report": _entry("look", "Write the HTML report of a case.", _LOOK),
    "deploy": _entry("act", "Give a flow to the server.", _ACT),
    "start": _entry("act", "Start a case of a deployed flow, or of a flow file.", _ACT),
    "suspend": _entry("act", "Suspend a case or one of its items.", _ACT),
    "continue": _entry("act", "Let a suspended case or item go on.", _ACT),
    "remove": _entry("act", "End a case or one of its items.", _ACT),
    "send": _entry("act", "Send a message to a case.", _ACT),
    "release": _entry("alerts", "Take a job from its pilot, and let another try it.", _ACT),
    "worklist": _entry("worklist", "List the user tasks that wait; claim, complete or reject one.", _ACT),
    "sets": _entry("sets", "List the data sets; make them, add files, close them.", _ACT),
    "watches": _entry("watches", "List the storage elements that are watched for files; add or remove one.", _ACT),
    "rules": _entry("rules", "Look at rules, add them, try them, go back.", _MEND),
    "raise": _entry("repairs", "Say that something happened to a case or an item.", _MEND),
    "mend": _entry("repairs", "Run an exlet on a case now, and make a rule of it if wanted.", _MEND),
    "reject": _entry("repairs", "Say that a choice was wrong, and put the right one in its place.", _MEND),
    "patterns": _entry("repairs", "List how conversations run and what repairs are called; add to them.", _MEND),
    "compensations": _entry("repairs", "List what undoes which task; add to it.", _MEND),
    "levels": _entry("repairs", "List the levels that retries wait in; drain one.", _MEND),
    "serve": _entry("serve", "Run a server.", _SERVE),
    "pilot": _entry("pilot", "Run a pilot that takes jobs from a server.", _SERVE),
    "sites": _entry("sites", "List the sites that pilots are submitted to; add, pause or remove one.", _SERVE),
    "storage": _entry("storage", "List the storage elements; add, show or remove one.", _SERVE),
    "webhooks": _entry("webhooks", "List where notifications are sent; add, remove or try one.", _SERVE),
    "export": _entry("archive", "Write cases into an archive, with their journals and files.", _SERVE),
    "import": _entry("archive", "Take the cases of an archive, all of them or none.", _SERVE),
    "token": _entry("setup", "Make a token, and the line that makes it known to a server.", _SERVE),
    "completion": _entry("setup", "Print the completion script of a shell.", _ELSE),
    "version": _entry("setup", "Print the version.", _ELSE),
}
