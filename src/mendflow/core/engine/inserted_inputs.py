"""Texts of a flow's inputs that stand in commands as they are. Whoever starts a case chooses them, and a shell would
run what stands in them."""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mendflow.core.engine.plan import inner_parts
from mendflow.core.expressions import ExpressionError, template_parts
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.shells import runs_in_shell
from mendflow.lazy import lazy_pattern

HARMLESS: Final = frozenset({"number", "boolean"})
"""Values of these types are checked when a case begins, and hold nothing that a shell would run."""

_CALL: Final = r"\((?:[^()\"']|\"[^\"]*\"|'[^']*'|\((?:[^()\"']|\"[^\"]*\"|'[^']*'|\([^()]*\))*\))*\)"
_CHAIN: Final = lazy_pattern(
    r"\s*(?:inputs\.(?P<input>[\w-]+)|inputs\[[\"'](?P<named>[^\"']+)[\"']\]|(?P<variable>[A-Za-z_]\w*))"
    rf"(?P<rest>(?:\.[\w-]+(?:{_CALL})?|\[[^\[\]]*\])*)\s*"
)
_STEP: Final = lazy_pattern(rf"(?:\.([\w-]+)|\[[^\[\]]*\])({_CALL})?")
_SIGN: Final = lazy_pattern(r"\"[^\"]*\"|'[^']*'|[-+()\[\]{}]")
_HARMLESS_CALLS: Final = frozenset(
    {"size", "contains", "startsWith", "endsWith", "matches", "exists", "exists_one", "all", "indexOf", "lastIndexOf"}
)
_VARIABLE: Final = lazy_pattern(r"\$(?:\{[#!]?)?(\w+)")
_NO_NAME: Final = lazy_pattern(r"[^A-Za-z0-9_]")


def input_variable(name: str) -> str:
    """The environment variable that an input is for scripts that use it: INPUT_SAMPLE for `sample`."""
    return f"INPUT_{_NO_NAME.sub('_', name).upper()}"


class InputVariables:
    """The variables of a flow's inputs, given the types of these. They are made once: a flow may have very many inputs,
    and as many commands. Files have paths of their own in each job, so they have none."""

    def __init__(self, inputs: Mapping[str, str]) -> None:
        self._names = {input_variable(name): name for name, type in inputs.items() if type not in ("file", "files")}
        self._places = {variable: place for place, variable in enumerate(self._names)}

    def used_in(self, command: str) -> dict[str, str]:
        """Those that a command names, with what they hold, in the order of the inputs."""
        if "$" not in command:
            return {}
        used = sorted(self._names.keys() & _VARIABLE.findall(command), key=self._places.__getitem__)
        return {each: f"${{{{ {path_of_input(self._names[each])} }}}}" for each in used}


def path_of_input(name: str) -> str:
    return f"inputs.{name}" if name.isidentifier() else f'inputs["{name}"]'


class _Chosen(NamedTuple):
    """What others choose: the columns of which kind are known, if it is a table or comes from one."""

    columns: Mapping[str, str] = {}


_Known = ChainMap[str, _Chosen | None]
"""What others choose, by how an expression begins: `inputs.NAME`, or the variable of a loop. Of a variable that hides
one of the same name, and that nobody chooses, nothing."""


def inserted_inputs(flow: Flow) -> list[str]:
    """A sentence for each text of an input that a command holds as it is, with the name of the job before it; also if
    it comes as a cell of a table or a part of a list, by a loop."""
    told = [
        f"{job.label or job.name}: {sentence}"
        for job, known in list(_jobs_of(flow))[::-1]
        if job.command is not None and runs_in_shell(job.shell)
        for sentence in _of_command(job.command, known)
    ]
    return list(dict.fromkeys(told))


def _jobs_of(flow: Flow) -> Iterator[tuple[JobActivity, _Known]]:
    """All jobs, each with what others choose where it stands."""
    inputs: _Known = ChainMap(
        {f"inputs.{name}": _Chosen(each.columns) for name, each in flow.inputs.items() if each.type not in HARMLESS}
    )
    pending: list[tuple[Any, _Known]] = [(flow, inputs)]
    while pending:
        activity, known = pending.pop()
        if isinstance(activity, JobActivity):
            yield activity, known
        if isinstance(activity, ForEach):
            known = _inside(activity, known)
        pending.extend((part, known) for part in inner_parts(activity))


def _inside(loop: ForEach, known: _Known) -> _Known:
    """What others choose inside of a loop: its variables hide others of their names."""
    lists = loop.axes or {loop.variable: loop.items}
    found: dict[str, _Chosen | None] = dict.fromkeys(lists)
    for name, items in lists.items():
        parts = items if isinstance(items, list) else [items]
        chosen = (each for part in parts if isinstance(part, str) for each in _chosen_in_template(part, known))
        if (first := next(chosen, None)) is not None:
            found[name] = first.chosen
    return known.new_child(found)


class _Use(NamedTuple):
    """What others choose, in an expression; `input` is the input that it is the whole of."""

    chosen: _Chosen
    text: str
    input: str = ""


def _of_command(command: str, known: _Known) -> Iterator[str]:
    for use in _chosen_in_template(command, known):
        variable = f'`"${input_variable(use.input)}"`, or ' if use.input else ""
        yield (
            f"`${{{{ {use.text} }}}}` puts a text that others choose into the command as it is, and a shell would run"
            f" what stands in it; write {variable}`${{{{ quote({use.text}) }}}}` without quotation marks around it"
        )


def _chosen_in_template(template: str, known: _Known) -> Iterator[_Use]:
    try:
        texts = [part.text for part in template_parts(template) if part.is_expression]
    except ExpressionError:
        return  # it is a problem, and told as one
    for text in texts:
        for part in _joined_parts(text):
            if (use := _use_of(part, text, known)) is not None:
                yield use


def _use_of(part: str, text: str, known: _Known) -> _Use | None:
    """What a part of an expression gives of what others choose: that itself, a member, or what a function makes of
    it."""
    found = _CHAIN.fullmatch(part)
    if found is None:
        return None
    name = found["input"] or found["named"]
    chosen = known.get(f"inputs.{name}" if name else found["variable"])
    if chosen is None or "quote(" in found["rest"] or _is_harmless(found["rest"], chosen):
        return None
    return _Use(chosen, text, name if name and not found["rest"].strip() else "")


def _is_harmless(path: str, chosen: _Chosen) -> bool:
    """Whether the last step of a path gives nothing that a shell would run."""
    steps = _STEP.findall(path)
    member, call = steps[-1] if steps else ("", "")
    return member in _HARMLESS_CALLS if call else chosen.columns.get(member) in HARMLESS


def _joined_parts(text: str) -> list[str]:
    """What an expression joins with `+`."""
    parts, depth, start = [], 0, 0
    for found in _SIGN.finditer(text):
        sign = found.group()
        if sign == "+" and depth == 0:
            parts.append(text[start : found.start()])
            start = found.end()
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
    return [*parts, text[start:]]
