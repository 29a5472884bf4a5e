"""Rules and exlets as command arguments: files by their endings; exlets also by name or as inline YAML."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from mendflow.cli.flow_arguments import is_flow_file, load_one
from mendflow.client import Client
from mendflow.core.model.errors import BadFlow, BadRules, InvalidRequest, NotFound, Problem
from mendflow.core.model.flow import Flow
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules import demand_named
from mendflow.core.rules import problems_of as rule_trees_problems
from mendflow.lazy import LazyModule, lazy_pattern

if TYPE_CHECKING:
    from mendflow.core.recovery import exlet_checks
    from mendflow.formats import rules as rule_formats
    from mendflow.formats.rules import xrs_reader, xrs_writer
    from mendflow.formats.yaml import exlets
else:
    exlet_checks = LazyModule("mendflow.core.recovery.exlet_checks")
    rule_formats = LazyModule("mendflow.formats.rules")
    exlets = LazyModule("mendflow.formats.yaml.exlets")
    xrs_reader = LazyModule("mendflow.formats.rules.xrs_reader")
    xrs_writer = LazyModule("mendflow.formats.rules.xrs_writer")

XRS = ".xrs"
ENDINGS = (".yaml", ".yml", XRS)
_WRITTEN_OUT = lazy_pattern(r"^\s*[\[{-]|:\s|:$|\n")
_WORD = lazy_pattern(r"[a-z][a-z-]*")


def load(path: Path, name: str = "", types: Mapping[str, str] = MappingProxyType({})) -> tuple[RuleSet, list[Problem]]:
    """The rules of a file, and problems with parts of another format that have no counterpart here. The ending gives
    the format; `name` overrides the flow's name. `types` are those that the flow declares for its inputs: a format that
    has texts only is read by them."""
    check_ending(path)
    rules, left = (
        xrs_reader.load_xrs(path, types) if path.suffix == XRS else (rule_formats.load_rules(path), list[Problem]())
    )
    named = msgspec.structs.replace(rules, name=name) if name else rules
    demand_named(named.name)
    return named, left


def dump(rules: RuleSet, path: Path) -> tuple[str, list[Problem]]:
    """The text of a rules file, and what another format cannot express."""
    check_ending(path)
    return (
        xrs_writer.write_xrs(rules)
        if path.suffix == XRS
        else (rule_formats.write_rules(rules, path.parent), list[Problem]())
    )


async def declared_types(client: Client, flow: str) -> dict[str, str]:
    """The types that a deployed flow declares for its inputs; none if it is not deployed."""
    try:
        found = await client.flow(flow)
    except NotFound:
        return {}
    return {name: declared.type for name, declared in found.flow.inputs.items()} if found.flow is not None else {}


class RulesToApply(msgspec.Struct, frozen=True):
    """Rules for a flow to run with, and a description of where they came from."""

    rules: RuleSet
    note: str


def rules_for(flow_file: str, flow: Flow, named: str) -> RulesToApply | None:
    """The rules of the named file, else of the one beside the flow: `night.rules.yaml` beside `night.yaml`. They are
    bound to this flow, whatever flow they were written for; only default rules stay default rules."""
    source = Path(flow_file.rpartition(".py:")[0] + ".py" if ".py:" in flow_file else flow_file)
    path = Path(named) if named else source.with_suffix(".rules.yaml")
    if not named and not path.is_file():
        return None
    rules, _ = load(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    name = rules.name if rules.name == DEFAULT_RULES else str(flow.name)
    return RulesToApply(msgspec.structs.replace(rules, name=name), f"from {path.name} ({digest})")


async def put_rules_once(client: Client, given: RulesToApply, project: str = "") -> None:
    """Upload the rules, unless the server had them before: rules that were added since must stay."""
    try:
        known = await client.rule_versions(given.rules.name)
    except NotFound:
        known = []
    if not any(version.note == given.note for version in known):
        own = project if given.rules.name != DEFAULT_RULES else ""
        await client.put_rules(given.rules, note=given.note, project=own)


def problems_of(path: Path) -> list[Problem]:
    """Everything that is wrong in a rules file, or has no counterpart here; also exlets that make no sense where rules
    conclude them."""
    try:
        rules, left = load(path)
        wrong = [*rule_trees_problems(rules), *exlet_checks.rule_set_problems(rules)]
        return [*left, *(Problem(message=message, file=str(path)) for message in wrong)]
    except BadRules as error:
        return list(error.problems)
    except InvalidRequest as error:
        return [Problem(message=error.message, file=str(path))]


def warnings_of(path: Path) -> list[Problem]:
    """What is allowed in a rules file, and seldom meant."""
    rules, _ = load(path)
    return [Problem(message=message, file=str(path)) for message in exlet_checks.rule_set_warnings(rules)]


def exlet_of(text: str) -> tuple[str, Flow | None]:
    """The exlet: by its name, from a file, or as YAML steps. A file that is not an exlet may be a flow, which serves as
    a worklet."""
    if not text:
        raise InvalidRequest("give --exlet EXLET: an exlet's name, a file with one, or its steps")
    if _WRITTEN_OUT.search(text):
        word = _WORD.search(text)
        name = f"{word.group() if word else 'exlet'}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        return name, exlets.read_exlet(text, Path(f"{name}.yaml"))
    if not is_flow_file(text):
        return text, None
    flow = _of_file(text)
    return str(flow.name), flow


def _of_file(text: str) -> Flow:
    if not text.endswith((".yaml", ".yml")):
        return load_one(text)
    try:
        return exlets.load_exlet(text)
    except BadFlow as no_exlet:
        try:
            return load_one(text)
        except BadFlow:
            raise no_exlet from None


def check_ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise InvalidRequest(f"{path} must end in one of {', '.join(ENDINGS)}; the ending gives its format")
