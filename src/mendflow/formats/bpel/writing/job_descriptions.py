"""A job's JSDL description, and the values that are inserted when it runs.

A text of the job with expressions is written as a placeholder. A copy inserts the value, as evaluated by CEL, at the
placeholder."""

from typing import Final

import msgspec
from lxml import etree
from msgspec.structs import replace

from mendflow.core.expressions.templates import expressions_of, template_parts
from mendflow.core.model.expr import CEL, Expr
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Submission
from mendflow.core.xml import ParsedElement, parse
from mendflow.formats.jsdl import write_jsdl

MARK: Final = "mendflow-expression-"


class JsdlTemplate(msgspec.Struct, frozen=True):
    """The description as XML, and the paths from it to each text that is put in, with the expression that gives it."""

    text: str
    filled: tuple[tuple[str, Expr], ...]


def jsdl_template(job: JobActivity, folder: str) -> JsdlTemplate:
    """Raises BadFlow for what JSDL cannot say; the job is told of by its own name."""
    marks: dict[str, str] = {}
    name = job.name.replace(".", "-")
    bare = replace(job, name=name, label="", targets=(), sources=(), join="any", when=None, suppress_join_failure=True)
    marked = replace(
        bare,
        submission=Submission.NOTIFY,
        command=_command(job.command, marks),
        env={key: _with_marks(value, marks) for key, value in job.env.items()},
        inputs={key: _with_marks(value, marks) for key, value in job.inputs.items()},
        publish={key: replace(each, url=_with_marks(each.url, marks)) for key, each in job.publish.items()},
    )
    text = write_jsdl(Flow(name=FlowName(name), body=marked, folder=folder)).partition("?>")[2].strip()
    return JsdlTemplate(text, tuple(_expression_paths(parse(text, name), marks)) if marks else ())


def _command(command: str | None, marks: dict[str, str]) -> str | None:
    """A shell is asked to run it, whatever it will be."""
    return command if command is None or not expressions_of(command) else f"{_with_marks(command, marks)};"


def _with_marks(text: object, marks: dict[str, str]) -> str:
    if not isinstance(text, str) or not expressions_of(text):
        return text  # type: ignore[return-value]  # what is no text is refused by whoever writes JSDL
    mark = f"{MARK}{len(marks) + 1}-"
    marks[mark] = text
    return mark


def _expression_paths(root: ParsedElement, marks: dict[str, str]) -> list[tuple[str, Expr]]:
    found = []
    for mark, template in marks.items():
        for each in root.iter(etree.Element):
            if mark in (each.text or ""):
                found.append((_path(each), Expr(_as_cel(template), CEL)))
    return found


def _path(at: ParsedElement) -> str:
    """The way down to an element, by numbers."""
    steps = [at, *at.iterancestors()][:-1]
    return "".join(f"/*[{_place(each)}]" for each in reversed(steps))


def _place(at: ParsedElement) -> int:
    return 1 + sum(1 for _ in at.itersiblings(etree.Element, preceding=True))


def _as_cel(template: str) -> str:
    """The text as one expression."""
    return " + ".join(
        f"string({piece.text})" if piece.is_expression else msgspec.json.encode(piece.text).decode()
        for piece in template_parts(template)
    )
