"""What the process that reads for the server is given, and what it gives back."""

from typing import ClassVar, Final

import msgspec

from mendflow.core.model.errors import BadFile, BadFlow, BadRules, InvalidRequest, Problem, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import FileRef, Value

READER_MODULE: Final = "mendflow.reading_process"
"""Named, not imported: it knows the formats of files, which the services do not."""


class FlowToCheck(msgspec.Struct, frozen=True, tag=True):
    """A flow; `alone` without those that came with it. Nothing comes of it, unless it is refused."""

    flow: Flow
    alone: bool = False


class FlowText(msgspec.Struct, frozen=True, tag=True):
    """The text of a flow file, and stored files beside it, of which a FlowCheck comes."""

    text: str
    name: str
    files: dict[str, FileRef] = {}


class RuleText(msgspec.Struct, frozen=True, tag=True):
    """The text of a file of rules, of which a ReadRulesView comes."""

    text: str
    name: str
    types: dict[str, str]


class JobText(msgspec.Struct, frozen=True, tag=True):
    """A description of jobs, of which a flow comes. It may stand in a folder."""

    text: str
    folder: str | None


class RuleTrial(msgspec.Struct, frozen=True, tag=True):
    """Sets of rules, the first of which is asked first, and what they are tried out on. An EvaluationView comes of
    it."""

    sets: list[RuleSet]
    exception: ExceptionType
    task: str
    context: dict[str, Value]


ReadingTask = FlowToCheck | FlowText | RuleText | JobText | RuleTrial


class ReadingRefusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error of whoever gave the text, on its way between two processes."""

    KINDS: ClassVar[dict[str, type[BadFlow]]] = {each.code: each for each in (BadFlow, BadRules, BadFile)}

    code: str
    message: str
    problems: list[Problem] = []
    field: str = ""

    @classmethod
    def of(cls, error: RequestError) -> "ReadingRefusal":
        problems = error.problems if isinstance(error, BadFlow) else []
        return cls(error.code, error.message, problems, str(error.fields.get("field", "")))

    @property
    def error(self) -> RequestError:
        if (kind := self.KINDS.get(self.code)) is not None:
            return kind(self.message, problems=self.problems)
        return InvalidRequest(self.message, **({"field": self.field} if self.field else {}))


class ReadingResult(msgspec.Struct, frozen=True, array_like=True):
    """`found` is what was read, as msgpack. `took_s` is what that took of the processor. `problem` is an internal
    error."""

    found: bytes = b""
    refusal: ReadingRefusal | None = None
    took_s: float = 0.0
    problem: str = ""
