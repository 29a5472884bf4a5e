"""The state of reading one flow file: problems so far, defined names, and their uses.

Names are collected during reading and checked at the end, so that the order of jobs does not matter. An *area* is a
part of the flow with its own data: the flow, a scope, an iteration, a handler. What is in an area is visible in it and
in the areas inside it."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from mendflow.core.engine.collect_hints import collect_hint, loop_around
from mendflow.core.engine.inserted_inputs import InputVariables
from mendflow.core.engine.result_checks import ResultFlaw, input_flaw, result_flaw
from mendflow.core.expressions import ExpressionError, flaw, template_parts
from mendflow.core.expressions.scanner import ENDS, Reference, scan
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, ForEach
from mendflow.formats.hints import hint_for
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml.document import ScalarNode, SourceSpan, YamlNode
from mendflow.formats.yaml.sent_files import SentFiles
from mendflow.formats.yaml.variable_hints import VARIABLE_HINTS, WORDS_OF_PYTHON

PROBLEMS_MAX: Final = 200
ALWAYS_KNOWN: Final = frozenset({"inputs"})


class NameUse(msgspec.Struct, frozen=True):
    """A use of a name: where, and inside which areas."""

    reference: Reference
    place: SourceSpan
    areas: tuple[int, ...]
    aliases: tuple[str, ...]


class YamlReader:
    """`is_alone`: the text came without the files beside it. No file is looked for then, and what stands in one is not
    judged: the machine that reads the text is not the one that it was written on. `sent`: the files that came with it,
    which has to be all that it names; None if nobody asks."""

    def __init__(
        self, file: str, text: str, folder: Path, *, is_alone: bool = False, sent: SentFiles | None = None
    ) -> None:
        self.file = file
        self.text = text
        self.folder = folder
        self.is_alone = is_alone
        self.sent = sent
        self.problems: list[Problem] = []
        self.uses: list[NameUse] = []
        self.inputs = {}
        self.areas: tuple[int, ...] = (0,)
        self.on_failure: Literal["finish", "stop"] = "finish"
        self.looped_inputs: list[tuple[str, SourceSpan]] = []
        self.channels: set[str] = set()
        self.inputs_of_jobs: list[tuple[str, str, SourceSpan, tuple[int, ...]]] = []
        self.replies: list[tuple[str, SourceSpan]] = []
        self._sets: list[tuple[str, SourceSpan, tuple[int, ...]]] = []
        self._last_area = 0
        self._variables: dict[int, set[str]] = {0: set(ALWAYS_KNOWN)}
        self._activities: dict[str, tuple[SourceSpan, tuple[int, ...]]] = {}
        self._aliases: tuple[str, ...] = ()
        self._enclosing: tuple[str, ...] = ()
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", text))]

    @property
    def inputs(self) -> dict[str, str]:
        """The types of the flow's inputs, by their names."""
        return self._inputs

    @inputs.setter
    def inputs(self, types: dict[str, str]) -> None:
        self._inputs = types
        self.input_variables = InputVariables(types)

    # What is wrong

    def problem(self, where: YamlNode | SourceSpan, message: str, suggestion: str = "") -> None:
        place = where if isinstance(where, SourceSpan) else where.place
        self.problems.append(
            Problem(file=self.file, line=place.line, column=place.column, message=message, suggestion=suggestion)
        )
        if len(self.problems) >= PROBLEMS_MAX:
            enough = Problem(file=self.file, message=f"there may be more; these are the first {PROBLEMS_MAX} problems")
            raise BadFlow(problems=[*self.problems, enough])

    def include(self, problems: Iterable[Problem]) -> None:
        """Take over the problems of another file."""
        self.problems.extend(problems)

    # Areas, variables, names of activities

    @contextmanager
    def area(self, *variables: str) -> Iterator[None]:
        """What is read meanwhile is in an area of its own, with these variables."""
        outer = self.areas
        self._last_area += 1
        self._variables[self._last_area] = set(variables)
        self.areas = (*outer, self._last_area)
        try:
            yield
        finally:
            self.areas = outer

    @contextmanager
    def alias(self, name: str) -> Iterator[None]:
        """What is read meanwhile may use `jobs.NAME` although it ends only later."""
        outer = self._aliases
        self._aliases = (*outer, name)
        try:
            yield
        finally:
            self._aliases = outer

    @contextmanager
    def inside(self, kind: str) -> Iterator[None]:
        """What is read meanwhile is in a handler or a loop of this kind."""
        outer = self._enclosing
        self._enclosing = (*outer, kind)
        try:
            yield
        finally:
            self._enclosing = outer

    def is_inside(self, *kinds: str) -> bool:
        return any(kind in kinds for kind in self._enclosing)

    def assigned(self, variable: str) -> None:
        """A variable is assigned here: the nearest one of that name, or else a new one in this area."""
        if not self.sees(variable):
            self._variables[self.areas[-1]].add(variable)

    def sees(self, variable: str) -> bool:
        """Whether there is a variable of this name here, so far."""
        return any(variable in self._variables[area] for area in self.areas)

    def elements(self) -> list[str]:
        """The names of the elements of the innermost loop here."""
        loops = [self._variables[area] for area in self.areas if "index" in self._variables[area]]
        return sorted(loops[-1] - {"index"}) if loops else []

    def changed(self, variable: str, place: SourceSpan) -> None:
        """An existing variable is changed here."""
        self._sets.append((variable, place, self.areas))

    def activity(self, name: str, place: SourceSpan) -> None:
        """Register the name of an activity. Each name is used once in a flow."""
        if name in self._activities:
            first = self._activities[name][0].line
            self.problem(place, f"`{name}` is the name of something in line {first} already; give each its own")
        else:
            self._activities[name] = (place, self.areas)
        if self.sent is not None:
            self.sent.places.setdefault(name, place)

    # Expressions

    def expression(self, text: str, place: SourceSpan) -> Expr:
        """Record what an expression uses, and its problems. The place is where its text starts."""
        wrong = flaw(text)
        if wrong is None:
            for reference in scan(text).references:
                self.uses.append(NameUse(reference, self.further(place, reference.offset), self.areas, self._aliases))
        else:
            where = self.further(place, wrong.offset) if wrong.offset is not None else place
            self.problem(where, f"in the expression `{shorten(text)}`: {wrong.message}")
        return Expr(text)

    def template(self, node: ScalarNode) -> None:
        """Record the expressions in a text."""
        if not isinstance(node.value, str) or "${{" not in node.value:
            return
        try:
            found = template_parts(node.value)
        except ExpressionError as error:
            self.problem(node, error.message)
            return
        at = node.place.start
        for piece in found:
            if not piece.is_expression:
                continue
            at = self.text.find("${{", at)
            while at > 0 and self.text[at - 1] == "$":
                at = self.text.find("${{", at + 1)
            started = self.text.find(piece.text, at) if at >= 0 else -1
            if started < 0 or started > node.place.end:
                # The text is in the file in another form, folded or with escapes.
                started = max(at, node.place.start)
            self.expression(piece.text, self.place(started))
            at = started + len(piece.text)

    def place(self, offset: int) -> SourceSpan:
        line = bisect_right(self._line_starts, offset)
        return SourceSpan(line, offset - self._line_starts[line - 1] + 1, offset, offset)

    def further(self, place: SourceSpan, offset: int) -> SourceSpan:
        """The place some characters further on, in the same line."""
        return msgspec.structs.replace(place, column=place.column + offset, start=place.start + offset)

    # Check names, when everything is read

    def judge_names(self, activities: Mapping[str, Activity]) -> None:
        self._judge_sets()
        for channel, place in self.replies:
            if channel not in self.channels:
                known = nearest_word(channel, self.channels)
                self.problem(place, f"nothing receives from the channel `{channel}`, so nobody can be answered", known)
        for path, source, key, areas in self.inputs_of_jobs:
            looping = any("index" in self._variables[area] for area in areas)
            if (flaw := input_flaw(path, source, activities, looping=looping)) is not None:
                self.problem(key, flaw.message, flaw.instead)
        for use in self.uses:
            self._judge_left(use, activities)
            name = use.reference.name
            if name.startswith(("jobs.", f"{ENDS}.")):
                self._judge_job(use, name[len("jobs.") :], activities)
            elif name == "inputs":
                self._judge_input(use)
            elif name.startswith("links."):
                self.problem(use.place, "`links` is not for flow files; say what a job waits for with `needs`")
            else:
                self._judge_variable(use, name)

    def _judge_sets(self) -> None:
        for variable, place, areas in self._sets:
            seen = set().union(*(self._variables[area] for area in areas))
            if variable not in seen:
                message = f"there is no variable `{variable}` to set; declare it under `variables:`"
                self.problem(place, message, nearest_word(variable, seen))
                self._variables[areas[0]].add(variable)

    def _judge_left(self, use: NameUse, activities: Mapping[str, Activity]) -> None:
        """Check the fields of a job's result, as far as the file defines them."""
        family, _, name = use.reference.name.partition(".")
        if family != "jobs":
            return
        meant = f"{name}.iteration" if name in use.aliases else name
        flaw = result_flaw(name, use.reference.members, activities, meant) or _nothing_collected(
            activities.get(meant), use.reference.members
        )
        if flaw is not None:
            self.problem(use.place, flaw.message, nearest_word(flaw.word, flaw.known) or flaw.instead)

    def _judge_job(self, use: NameUse, name: str, activities: Mapping[str, Activity]) -> None:
        if name in use.aliases:
            return
        found = self._activities.get(name)
        if found is None:
            self.problem(use.place, f"there is no job `{name}` in this flow", nearest_word(name, self._activities))
        elif use.areas[: len(found[1])] != found[1]:
            loop = loop_around(name, activities)
            hint = collect_hint(loop, (name, *use.reference.members)) if loop is not None else ""
            inside = "it is inside a loop, a scope or a handler that this is not in"
            self.problem(use.place, f"`jobs.{name}` cannot be seen here: {hint or inside}")

    def _judge_input(self, use: NameUse) -> None:
        if use.reference.members and use.reference.members[0] not in self.inputs:
            name = use.reference.members[0]
            known = nearest_word(name, self.inputs)
            self.problem(use.place, f"the flow has no input `{name}`; declare it under `inputs:`", known)

    def _judge_variable(self, use: NameUse, name: str) -> None:
        seen = set().union(*(self._variables[area] for area in use.areas))
        if name in seen:
            return
        if name in self._activities:
            self.problem(use.place, f"there is no variable `{name}`", f"`jobs.{name}`")
        elif name in self.inputs:
            self.problem(use.place, f"there is no variable `{name}`", f"`inputs.{name}`")
        elif name in WORDS_OF_PYTHON:
            self.problem(use.place, f"there is no variable `{name}`", f"`{WORDS_OF_PYTHON[name]}`")
        else:
            hint, likely = hint_for(name, VARIABLE_HINTS), nearest_word(name, seen)
            message = f"there is no variable `{name}` here"
            self.problem(use.place, f"{message}; {hint}" if hint and not likely else message, likely)


def _nothing_collected(activity: Activity | None, members: tuple[str, ...]) -> ResultFlaw | None:
    """The whole of what a loop gives is asked for, and it gives nothing."""
    if not isinstance(activity, ForEach) or members != ("outputs",) or activity.collect or activity.collect_map:
        return None
    hint = collect_hint(activity, ())
    return ResultFlaw(hint) if hint else None


def shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
