"""Texts of a flow's inputs that stand in commands as they are. Whoever starts a case chooses them, and a shell would
run what stands in them."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mendflow.core.engine.plan import walk_activities
from mendflow.core.expressions import ExpressionError, template_parts
from mendflow.core.expressions.scanner import plain_reference
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.shells import runs_in_shell
from mendflow.lazy import lazy_pattern

HARMLESS: Final = frozenset({"number", "boolean"})
"""Values of these types are checked when a case begins, and hold nothing that a shell would run."""

_JOINED: Final = lazy_pattern(r"(?:^|\+)\s*(inputs\.[\w-]+|inputs\[(?:\"[^\"]+\"|'[^']+')\])\s*(?=\+|$)")
_NO_NAME: Final = lazy_pattern(r"[^A-Za-z0-9_]")


def input_variable(name: str) -> str:
    """The environment variable that an input is for scripts that use it: INPUT_SAMPLE for `sample`."""
    return f"INPUT_{_NO_NAME.sub('_', name).upper()}"


def used_input_variables(command: str, inputs: Mapping[str, str]) -> dict[str, str]:
    """The variables of inputs that a command names, with what they hold, given the types of the inputs. Files have
    paths of their own in each job, so they are none."""
    return {
        variable: f"${{{{ {path_of_input(name)} }}}}"
        for name, type in inputs.items()
        if type not in ("file", "files")
        and (variable := input_variable(name)) in command
        and re.search(rf"\$(?:{variable}\b|{{[#!]?{variable}\b)", command)
    }


def path_of_input(name: str) -> str:
    return f"inputs.{name}" if name.isidentifier() else f'inputs["{name}"]'


def inserted_inputs(flow: Flow) -> list[str]:
    """A sentence for each input that a command holds as it is, with the name of the job before it."""
    jobs = [each for each in walk_activities(flow) if isinstance(each, JobActivity) and each.command is not None]
    told = [
        f"{job.label or job.name}: {sentence}"
        for job in jobs[::-1]
        if runs_in_shell(job.shell)
        for sentence in _of_command(job.command or "", flow.inputs)
    ]
    return list(dict.fromkeys(told))


def _of_command(command: str, inputs: Mapping[str, Input]) -> Iterator[str]:
    try:
        texts = [part.text for part in template_parts(command) if part.is_expression]
    except ExpressionError:
        return  # it is a problem, and told as one
    for text in texts:
        for name in _names_in(text):
            if name in inputs and inputs[name].type not in HARMLESS:
                yield (
                    f"`${{{{ {text} }}}}` puts a text that others choose into the command as it is, and a shell would "
                    f'run what stands in it; write `"${input_variable(name)}"`, or `${{{{ quote({text}) }}}}` without '
                    "quotation marks around it"
                )


def _names_in(text: str) -> Iterator[str]:
    """The inputs that an expression gives as they are, whole or joined with other texts."""
    if (path := plain_reference(text)) is not None:
        yield from path.members[:1] if path.name == "inputs" else ()
        return
    for found in _JOINED.finditer(text):
        yield found[1].removeprefix("inputs.").removeprefix("inputs[").strip("\"']")
