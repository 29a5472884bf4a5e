"""What single operations name besides their subject, and what the gate has to see about that."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from mendflow.core.model.errors import Forbidden
from mendflow.core.model.rules import DEFAULT_RULES

if TYPE_CHECKING:
    from mendflow.server.gate import ProjectGate

Arguments = dict[str, Any]
Check = Callable[["ProjectGate", Arguments, str], Awaitable[None]]


async def start(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """Results of an earlier case are used in the same project only."""
    if not arguments["cache_from"]:
        return
    arguments["cache_from"] = await gate.named(arguments["cache_from"])
    if await gate.demand_seen("case", arguments["cache_from"]) != project:
        raise Forbidden(f"case {arguments['cache_from']} is of another project: its results are not used in this one")


async def mend(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """An exlet or a rule that is new is taught, which is for authors; and a user task is ended by its own role."""
    wish = arguments["wish"]
    if wish.decision and await gate.demand_seen("decision", wish.decision) != project:
        raise Forbidden(f"decision {wish.decision} is not about a case of project {project}")
    await _demand_teacher(gate, wish, wish.rules, project)
    if wish.item:
        await _demand_task_role(gate, arguments["case"], wish.item)
    if wish.decision:
        await _demand_task_role_of(gate, wish.decision)


async def reject_choice(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    wish = arguments["wish"]
    await _demand_teacher(gate, wish, "", project)
    await _demand_task_role_of(gate, wish.decision)


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


async def _demand_task_role_of(gate: "ProjectGate", decision: str) -> None:
    found = await gate.domain.decision(decision)
    if found.item is not None:
        await _demand_task_role(gate, found.case, found.item)


async def _demand_task_role(gate: "ProjectGate", case: str, item: str) -> None:
    gate.caller.require_task_role(await gate.domain.open_task_role(case, item))


async def cancel(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    """A whole case may be ended by whoever steers it; a user task only by its own role."""
    if arguments["item"]:
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


async def put_schedule(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    """A schedule is of the project of its flow."""
    await gate.demand_role("author", "flow", arguments["spec"].flow)


async def put_data_set(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """The cases that a set starts are of its own project, and it waits for sets that the caller sees."""
    wish = arguments["wish"]
    for rule in wish.gatherings:
        if await gate.demand_seen("flow", rule.flow) != project:
            raise Forbidden(f"flow {rule.flow} is of another project than the data set", project=project)
    for name in wish.after:
        await gate.demand_seen("data set", name)


async def add_to_set(gate: "ProjectGate", arguments: Arguments, _project: str) -> None:
    for each in arguments["files"]:
        logical = each if isinstance(each, str) else each.logical
        if logical:
            await gate.demand_seen("logical file", logical)


async def add_data(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """A file that is added to a set starts cases there."""
    data_set = arguments["file"].data_set
    if data_set and await gate.domain.projects.find("data set", data_set) not in (None, project):
        raise Forbidden(f"data set {data_set} is of another project than the file", project=project)


async def engine_cases(gate: "ProjectGate", arguments: Arguments, project: str) -> None:
    """An engine sees its own cases; people see those of their projects."""
    caller, engine = gate.caller, arguments["engine"]
    if project and caller.may("viewer", project):
        return
    owners = {each.name: each.owner for each in await gate.domain.engines()}
    if owners.get(engine, caller.name) != caller.name:
        gate.refuse("engine", engine)


CHECKS: Final[dict[str, Check]] = {
    "start": start,
    "mend": mend,
    "reject_choice": reject_choice,
    "cancel": cancel,
    **dict.fromkeys(("claim", "release", "complete", "reject"), on_task),
    "evaluate_rules": evaluate_rules,
    "differences": differences,
    "put_schedule": put_schedule,
    "put_data_set": put_data_set,
    "add_to_set": add_to_set,
    "add_data": add_data,
    "engine_cases": engine_cases,
}
"""By operation. They are asked once the subject was found to be the caller's, and not for administrators."""
