"""Which files of this machine are sent to a server because a flow file names them: those in its folder, or below it,
wherever links lead. A flow file may be from anybody, and what it names may be anything that its reader can read. What
lies elsewhere is sent on the word of whoever gives the command: `--input NAME=PATH`."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from mendflow.cli.deployment import FlowFile, flows_within, named_files
from mendflow.cli.options import ServerTarget, store_url
from mendflow.cli.printing import say
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import FILE, FILES, TABLE, Flow, Input
from mendflow.core.model.values import Value

NAMES_SHOWN: Final = 5
NO_VALUES: Final[Mapping[str, Value]] = {}


def sends_files(target: ServerTarget) -> bool:
    """Whether files leave this account: jobs of a flow that is run here could read them anyway."""
    return bool(target.server or store_url())


class _Elsewhere(NamedTuple):
    named: FlowFile
    leads_to: Path

    def __str__(self) -> str:
        path, name = self.named.path.absolute(), self.named.input
        link = "" if self.leads_to == path else f", which leads to {self.leads_to}"
        given = f"give it at the start, by --input {name}={path}, and name no default; or " if name else ""
        return f"{path}{link}, {self.named.what}: {given}have it in that folder, or below"


def flow_to_send(flow: Flow, given: Collection[str] = (), values: Mapping[str, Value] = NO_VALUES) -> Flow:
    """The flow without defaults in whose place something is given, if they are files elsewhere; those that are sent are
    told. `values` has the files of defaults which are looked for here. Raises InvalidRequest if it names others
    elsewhere."""
    elsewhere = [found for each in _named(flow, given, values) if (found := _elsewhere(each, flow)) is not None]
    replaced = {each.named.input for each in elsewhere if each.named.input in given and each.named.flow is flow}
    refused = [each for each in elsewhere if not (each.named.input in replaced and each.named.flow is flow)]
    if refused:
        lines = "\n  ".join(dict.fromkeys(map(str, refused[:NAMES_SHOWN])))
        more = f"\n  and {len(refused) - NAMES_SHOWN} more" if len(refused) > NAMES_SHOWN else ""
        raise InvalidRequest(
            f"the flow {flow.name} names files that are not in its folder {Path(flow.folder).absolute()}, and a server"
            f" is sent none of these; nothing was sent:\n  {lines}{more}"
        )
    inputs = {name: _without_default(each) if name in replaced else each for name, each in flow.inputs.items()}
    flow = replace(flow, inputs=inputs) if replaced else flow
    _say_sent(flow, given, values)
    return flow


def _named(flow: Flow, given: Collection[str], values: Mapping[str, Value]) -> Iterator[FlowFile]:
    yield from named_files(flow)
    for each in flows_within(flow):
        for name, declared in each.inputs.items():
            if declared.type == TABLE and declared.read_from and each.folder:
                path = Path(each.folder, declared.read_from)
                yield FlowFile(path, each, f"the default of input {name}", name)
    for name, value in values.items():
        if name not in given and flow.inputs[name].type in (FILE, FILES):
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str) and Path(path).is_absolute():
                    yield FlowFile(Path(path), flow, f"a default of input {name}", name)


def _elsewhere(named: FlowFile, flow: Flow) -> _Elsewhere | None:
    leads_to = named.path.resolve()
    folders = {Path(each).resolve() for each in (flow.folder, named.flow.folder) if each}
    return None if any(map(leads_to.is_relative_to, folders)) else _Elsewhere(named, leads_to)


def _without_default(input: Input) -> Input:
    return replace(input, default=None, required=True, read_from="", read_digest="")


def _say_sent(flow: Flow, given: Collection[str], values: Mapping[str, Value]) -> None:
    names = [
        str(each.path.absolute().relative_to(folder) if each.path.absolute().is_relative_to(folder) else each.path)
        for each in _named(flow, given, values)
        if each.input and (folder := Path(each.flow.folder).absolute())
    ]
    names = list(dict.fromkeys(names))
    if names:
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        say(f"note: the server is sent defaults of {flow.name}: {', '.join(names[:NAMES_SHOWN])}{more}", err=True)
