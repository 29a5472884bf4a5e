"""What single operations name besides their subject, and what the gate has to see about that."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from mendflow.core.model.errors import Forbidden, NotFound
from mendflow.core.model.principals import PILOT
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.services.domains.work_files import files_given

if TYPE_CHECKING:
    from mendflow.server.gate import ProjectGate

Arguments = dict[str, Any]
EARLIER_CASES: Final = {
    "cache_from": "its results are not used in this one",
    "rerun_of": "it is not run again in this one",
}
Check = Callable[["ProjectGate", Arguments, str], Awaitable[None]]


async def start(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """Results of an earlier case are used, and a case is run again, in the same project only."""
    await given_files(gate, arguments, project)
    for name, refused in EARLIER_CASES.items():
        if arguments.get(name):
            arguments[name] = await gate.named(arguments[name])
            if await gate.demand_seen("case", arguments[name]) != project:
                raise Forbidden(f"case {arguments[name]} is of another project: {refused}")


async def mend(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """An exlet or a rule that is new is taught, which is for authors; and user tasks are ended by their own roles."""
    wish = arguments["wish"]
    if wish.decision and await gate.demand_seen("decision", wish.decision) != project:
        raise Forbidden(f"decision {wish.decision} is not about a case of project {project}")
    await _demand_teacher(gate, wish, wish.rules, project)
    if wish.exlet and not wish.condition and wish.flow is None:
        await _demand_known_exlet(gate, wish.exlet, wish.rules or await _flow_of(gate, arguments["case"]), project)
    await given_files(gate, arguments, project)
    if wish.item:
        await _demand_task_role(gate, arguments["case"], wish.item)
    if wish.decision:
        await _demand_task_role_of(gate, wish.decision)


async def draft_rule(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """The case at hand is shown, and kept with the rule: it is of the project of the rules."""
    wish = arguments["wish"]
    if wish.decision and await gate.demand_seen("decision", wish.decision) != project:
        raise Forbidden(f"decision {wish.decision} is not about a case of project {project}")


async def add_rule(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    await draft_rule(gate, arguments, project)
    await given_files(gate, arguments, project)


async def reject_choice(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    wish = arguments["wish"]
    await _demand_teacher(gate, wish, "", project)
    if wish.exlet and not (wish.withdraw or wish.condition or wish.flow is not None):
        wrong = await gate.domain.decision(wish.decision)
        if wrong.type is not ExceptionType.SELECTION:
            await _demand_known_exlet(gate, wish.exlet, wrong.flow, project)
    await given_files(gate, arguments, project)
    if not wish.withdraw and (wish.exlet or wish.condition or wish.flow is not None):
        await _demand_task_role_of(gate, wish.decision)
        if exlet := (await gate.domain.decision(wish.decision)).exlet_case:
            await _demand_task_role(gate, exlet)


async def _demand_teacher(gate: "ProjectGate", wish: Any, rules: str, project: str) -> None:
    if rules == DEFAULT_RULES and (wish.condition or wish.flow is not None):
        raise Forbidden("the default rules belong to the whole installation; only its administrators change them")
    if rules and await gate.demand_seen("rules", rules) not in (project, ""):
        raise Forbidden(f"the rules {rules} are of another project than the case")
    if (wish.condition or wish.flow is not None) and not gate.caller.may("author", project):
        raise Forbidden(
            f"{gate.caller.name!r} may not teach rules and exlets in project {project}: that is for its authors;"
            " name an exlet that is there",
            project=project,
        )


async def _demand_known_exlet(gate: "ProjectGate", exlet: str, rules: str, project: str) -> None:
    """An exlet that the rules do not have, as a deployed flow, is added to them when it is named: that is teaching."""
    if not gate.caller.may("author", project) and await gate.domain.would_teach(exlet, rules, project):
        raise Forbidden(
            f"neither the rules of {rules} nor the default rules have an exlet {exlet!r:.100}; an author of project"
            f" {project} adds it to them",
            project=project,
        )


async def _flow_of(gate: "ProjectGate", case: str) -> str:
    return (await gate.domain.case(await gate.named(case))).flow


async def _demand_task_role_of(gate: "ProjectGate", decision: str) -> None:
    found = await gate.domain.decision(decision)
    if found.item is not None:
        await _demand_task_role(gate, found.case, found.item)


async def _demand_task_role(gate: "ProjectGate", case: str, item: str = "") -> None:
    """Whoever ends an item, or a case that is part of another, has the roles of the user tasks that wait inside."""
    for task in await gate.domain.open_tasks(case, item):
        gate.caller.require_task_role(task.role)


async def cancel(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    """A case that somebody has started may be ended as a whole by whoever steers it; a user task only by its role."""
    await _demand_task_role(gate, arguments["case"], arguments["item"])


async def on_task(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """A user task is for its role; one that is for nobody in particular, for those who steer the case."""
    role = (await gate.domain.user_task(arguments["task"])).role
    gate.caller.require_task_role(role)
    if not role and not gate.caller.may("operator", project):
        raise Forbidden(f"this user task is for operators of project {project}", project=project)


async def evaluate_rules(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    wish = arguments["wish"]
    if wish.decision:
        await gate.demand_seen("decision", wish.decision)
    if wish.name:
        await gate.demand_seen("rules", wish.name)


async def differences(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    if arguments["decision"]:
        await gate.demand_seen("decision", arguments["decision"])
    if arguments["rules"]:
        await gate.demand_seen("rules", arguments["rules"])


async def compare_cases(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    arguments["other"] = await gate.named(arguments["other"])
    await gate.demand_seen("case", arguments["other"])


async def put_schedule(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """A schedule is of the project of its flow."""
    await gate.demand_role("author", "flow", arguments["spec"].flow)
    await given_files(gate, arguments, project)


async def put_data_set(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """The cases that a set starts are of its own project, and it waits for sets that the caller sees."""
    wish = arguments["wish"]
    await given_files(gate, arguments, project)
    for rule in wish.gatherings:
        if await gate.demand_seen("flow", rule.flow) != project:
            raise Forbidden(f"flow {rule.flow} is of another project than the data set", project=project)
    for name in wish.after:
        await gate.demand_seen("data set", name)


async def add_to_set(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    await given_files(gate, arguments, project)
    for each in arguments["files"]:
        logical = each if isinstance(each, str) else each.logical
        if logical:
            await gate.demand_seen("logical file", logical)


async def add_data(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """A file that is added to a set starts cases there."""
    data_set = arguments["file"].data_set
    if data_set and await gate.domain.project_lookup.find("data set", data_set) not in (None, project):
        raise Forbidden(f"data set {data_set} is of another project than the file", project=project)


async def engine_cases(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """An engine sees its own cases; people see those of their projects."""
    caller, engine = gate.caller, arguments["engine"]
    if project and caller.may("viewer", project):
        return
    owners = {each.name: each.owner for each in await gate.domain.engines()}
    if owners.get(engine, caller.name) != caller.name:
        gate.refuse("engine", engine)


async def read_file(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    """A file is read by whoever can read a case that refers to it and names that, by the pilots that hold a job which
    does, and by whoever sent it. It is answered in the same words whether or not there is such a file."""
    if not await _may_read(gate, arguments["sha256"], arguments["of"]):
        raise _no_file(arguments["sha256"], arguments["of"])


async def file_size(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    """As for reading; and whether a file need not be sent again may be asked without naming a case."""
    sha256, of = arguments["sha256"], arguments["of"]
    if not await _may_read(gate, sha256, of) and (of or not await _is_known(gate, sha256)):
        raise _no_file(sha256, of)


async def given_files(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    """Who gives a file to a case has sent it, or can read a case that refers to it: otherwise whoever knows a digest
    could have a job tell what is in the file. One with a logical name is what the catalogue has under that name, for
    those who can look at it there."""
    named, stored = files_given(list(arguments.values()))
    for each in named:
        await gate.demand_seen("logical file", each.logical)
        if each.sha256 not in ("", (await gate.domain.datum(each.logical)).sha256):
            raise NotFound(
                f"there is no logical file {each.logical!r:.100} with the digest {each.sha256}: give it as"
                f" lfn:{each.logical:.100}",
                sha256=each.sha256,
            )
    readers, sight, who = gate.domain.file_readers, gate.caller.sight(), gate.caller.name
    given = [each.sha256 for each in stored]
    unsent = [each for each in given if not await readers.has_given(who, each)]
    if missing := await readers.in_no_flow(sight, await readers.unknown(sight, unsent, who)):
        first = next(each for each in given if each in missing)
        raise NotFound(
            f"there is no stored file {first} for you, which is to be given here: send it first, as"
            " PUT /api/v1/files/DIGEST; the newest cases of your projects do not refer to it",
            sha256=first,
        )


async def complete(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    await on_task(gate, arguments, project)
    await given_files(gate, arguments, project)


async def _may_read(gate: "ProjectGate", sha256: str, of: str) -> bool:
    readers, caller = gate.domain.file_readers, gate.caller
    if await readers.has_given(caller.name, sha256):
        return True
    if of:
        case = await gate.named(of)
        gate.demand_viewer(await gate.domain.project_lookup.find("case", case), "case", case)
        if await readers.refers(case, sha256):
            return True
    return PILOT in caller.roles and await readers.is_held(caller, sha256)


async def _is_known(gate: "ProjectGate", sha256: str) -> bool:
    """Whether a file is there that a case of the caller's projects refers to."""
    try:
        await gate.domain.file_size(sha256)
    except NotFound:
        return False
    return not await gate.domain.file_readers.unknown(gate.caller.sight(), {sha256}, gate.caller.name)


def _no_file(sha256: str, of: str) -> NotFound:
    if of:
        return NotFound(f"case {of!r:.100} refers to no stored file {sha256}", sha256=sha256)
    return NotFound(
        f"there is no stored file {sha256} for you: name a case that refers to it, as ?of=CASE", sha256=sha256
    )


CHECKS: Final[dict[str, Check]] = {
    **dict.fromkeys(("start", "start_with_flow"), start),
    "mend": mend,
    "add_rule": add_rule,
    "try_rule": draft_rule,
    "reject_choice": reject_choice,
    "cancel": cancel,
    **dict.fromkeys(("claim", "release", "reject"), on_task),
    "complete": complete,
    **dict.fromkeys(("rerun", "send", "deploy", "put_rules"), given_files),
    "evaluate_rules": evaluate_rules,
    "differences": differences,
    "compare_cases": compare_cases,
    "put_schedule": put_schedule,
    "put_data_set": put_data_set,
    "add_to_set": add_to_set,
    "add_data": add_data,
    "engine_cases": engine_cases,
    "read_file": read_file,
    "file_size": file_size,
}
"""By operation. They are asked once the subject was found to be the caller's, and not for administrators."""
