"""A handle stands for a value that is not known yet: an input of the flow, or a job's result.

It can be passed on, indexed, put into a text, compared and computed with: that makes an expression, which is evaluated
when the value is there. What needs the value itself while the flow is being built raises an error that says so."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

from mendflow.core.engine.result_checks import files_left_by
from mendflow.core.expressions import RESERVED
from mendflow.core.model.flow import Activity, Call, ForEach, JobActivity
from mendflow.core.model.values import Value
from mendflow.formats.python.expression_text import COMPARISONS, CONDITIONS, FORMS, literal_text
from mendflow.formats.python.hints import call_error
from mendflow.formats.python.problems import bad_flow
from mendflow.formats.spelling import nearest_word
from mendflow.python_values.contents import Fill
from mendflow.python_values.encoding import PythonEncoder
from mendflow.python_values.errors import BadPythonValue

MEMBER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHOWN: Final = "<what will be "
ENDS: Final = ("failed", "skipped")
ASKED_END: Final = re.compile(r"\$\{\{ (failed|skipped)\(jobs\.[^)]*\) \}\}")
Holds = Literal["", "file", "files", "path", "end"]
"""What a value is known to be: a stored file, a list of them, the path of a file beside the flow, or whether a job
ended in some way."""


class JobResult(NamedTuple):
    """Whose result a handle is."""

    name: str
    activity: Activity

    @property
    def path(self) -> str:
        return f"jobs.{self.name}" if "." not in self.name else f"jobs.`{self.name}`"


class Handle:
    """`h["rows"]`, `h.rows` and `h[0]` are parts of the value; `h > 3` is an expression; in an f-string it becomes
    `${{ expression }}`, and with `:q` one word of a shell."""

    __slots__ = ("_expression", "_holds", "_is_compound", "_owner", "_result")
    __hash__ = object.__hash__

    def __init__(
        self,
        owner: object,
        expression: str,
        result: JobResult | None = None,
        *,
        holds: Holds = "",
        is_compound: bool = False,
    ) -> None:
        self._owner = owner
        self._expression = expression
        self._result = result
        self._holds: Holds = holds
        self._is_compound = is_compound

    def file(self, name: str = "") -> "Handle":
        """A file of the job's result, by its name in the job's `files`; without a name the only one. Of a mapped job it
        is the list of them, in the order of the elements."""
        result = self._result
        if result is None:
            raise bad_flow(f"`{self._expression}` is not a job, and leaves no files")
        known = files_left_by(result.activity)
        if not name and known is not None and len(known) == 1:
            name = known[0]
        if known is not None and name not in known:
            raise bad_flow(missing_file(result, name, known), nearest_word(name, known) if name else "")
        return Handle(self._owner, f"{result.path}.files{step(name)}", holds=file_kind(result.activity, name))

    def __getitem__(self, key: str | int) -> "Handle":
        if not isinstance(key, (str, int)) or isinstance(key, bool):
            raise bad_flow(f"a part of a value has a name or a number, not {key!r}; do this inside a job")
        if isinstance(key, str) and self._result is not None and isinstance(self._result.activity, ForEach):
            raise bad_flow(
                f"`{self._result.name}` gives a list, one result for each element, and has no `{key}`; "
                "pass the list on and take it apart inside a job"
            )
        holds: Holds = "file" if self._holds == "files" and isinstance(key, int) else ""
        return Handle(self._owner, self._operand() + step_into(self._operand(), key), holds=holds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._result is not None and name in ENDS:
            return Handle(self._owner, f"{name}({self._result.path})", holds="end")
        if self._result is not None and name == "files":
            return ResultFiles(self)
        return self[name]

    def __str__(self) -> str:
        if self._holds in ("file", "files"):
            raise bad_flow(
                f"`{self._expression}` is {'a file' if self._holds == 'file' else 'a list of files'}, which no text "
                'can hold; give it to the job as inputs={"in.txt": ...}, or inputs={"parts/": ...} for a list, and '
                "write that path"
            )
        return braces(self)

    def __format__(self, spec: str) -> str:
        text = str(self)
        if spec == "q":
            return f"${{{{ quote({self._expression}) }}}}"
        if spec:
            self._unknown(f"cannot be written as `{spec}`", "do it inside a job; `:q` makes it one word of a shell")
        return text

    def __repr__(self) -> str:
        return f"{SHOWN}{self._expression}>"

    def __iter__(self) -> Iterator[Any]:
        shown = self._expression.rpartition(".")[2] if MEMBER.fullmatch(self._expression.rpartition(".")[2]) else "..."
        self._unknown("cannot be iterated", f"job.map({shown}) runs a job for each element, in place of a loop")

    def __len__(self) -> int:
        self._unknown("has no length", 'take it inside a job, or in a condition: when=f"size({value}) > 3"')

    def __bool__(self) -> bool:
        self._unknown(
            "cannot be tested",
            "use job.options(when=value > 3)(...) to run a job or not; in conditions `&`, `|` and `~` stand for and, "
            "or, not, with each comparison in parentheses: (a > 3) & (a < 9)",
        )

    def __contains__(self, _: object) -> bool:
        self._unknown("cannot be searched", "do it inside a job, or in a condition: when=f\"'a' in {value}\"")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        self._unknown("cannot be called", call_error(self._expression))

    def __neg__(self) -> "Handle":
        return self._made(f"-{self._operand()}")

    def __pos__(self) -> "Handle":
        return self

    def __abs__(self) -> "Handle":
        return self._made(f"math.abs({self._expression})")

    def __invert__(self) -> "Handle":
        return self._made(f"!{self._operand()}")

    def _combined(self, operator: str, other: Any, is_swapped: bool = False) -> "Handle":
        if operator in CONDITIONS and not isinstance(other, (Handle, bool)):
            raise bad_flow(
                f"`{'&' if operator == 'and' else '|'}` combines conditions, and {other!r:.80} is none; put each "
                "comparison in parentheses: (a > 3) & (b < 5)"
            )
        if operator == "mul" and isinstance(other, (str, list, tuple)):
            self._unknown("is no number yet", "repeat a text or a list inside a job")
        if operator not in CONDITIONS:
            for each in (self, other):
                if isinstance(each, Handle):
                    each._demand_value()
        if isinstance(other, Handle) and other._owner is not self._owner:
            raise bad_flow(f"`{other._expression}` belongs to another flow; pass it in as an input")
        texts = [self._operand(), other._operand() if isinstance(other, Handle) else literal_text(other)]
        first, second = reversed(texts) if is_swapped else texts
        return self._made(FORMS[operator].format(a=first, b=second))

    def _made(self, expression: str) -> "Handle":
        return Handle(self._owner, expression, is_compound=True)

    def _operand(self) -> str:
        return f"({self._expression})" if self._is_compound else self._expression

    def _demand_value(self) -> None:
        """Refuse a condition about a job where a value is wanted: the result may have a part of that name."""
        if self._holds == "end":
            name = self._expression.partition("(")[0]
            raise bad_flow(
                f"`.{name}` of a job asks whether it {'failed' if name == 'failed' else 'was skipped'}, which only "
                f'a condition can: when=x.{name}; the part of its result is x["{name}"]'
            )

    def _unknown(self, what: str, instead: str) -> NoReturn:
        raise bad_flow(f"`{self._expression}` is not known while the flow is being built: it {what}; {instead}")


class ResultFiles:
    """The files of a job's result by their names: `made.files["table"]`, `made.files.table`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __getitem__(self, name: str) -> Handle:
        return self._handle.file(name)

    def __getattr__(self, name: str) -> Handle:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._handle.file(name)


REFUSED: Final[dict[tuple[str, ...], tuple[str, str]]] = {
    ("int", "float", "complex", "index", "bytes"): (
        "is no number yet",
        "do it inside a job; for a number of repetitions let a job return list(range(n)), and map over that",
    ),
    ("round", "trunc", "floor", "ceil", "pow", "rpow", "divmod", "rdivmod", "matmul", "rmatmul"): (
        "cannot be computed with like that",
        "do it inside a job; + - * / // % and comparisons make expressions",
    ),
    ("lshift", "rlshift", "rshift", "rrshift", "xor", "rxor"): (
        "is no order of jobs and no set of bits",
        "a job waits for those whose results it gets, or for needs=[...] and after=[...]",
    ),
    ("fspath",): ("is no path yet", "give it to a job whose parameter is a Path, or as inputs={'in.txt': ...}"),
    ("enter", "exit", "await", "aiter", "anext"): ("cannot be awaited", "pass it to a job, which waits for it"),
    ("next", "reversed"): ("cannot be iterated", "use job.map(...) to do something for each element"),
    ("setitem", "delitem"): ("cannot be changed", "make a new value inside a job"),
}
"""What needs the value itself, and what to do instead."""


def _install_operators() -> None:
    for name in FORMS:

        def combine(self: Handle, other: Any, _name: str = name) -> Handle:
            return self._combined(_name, other)

        def combine_swapped(self: Handle, other: Any, _name: str = name) -> Handle:
            return self._combined(_name, other, is_swapped=True)

        setattr(Handle, f"__{name}__", combine)
        if name not in COMPARISONS:
            setattr(Handle, f"__r{name}__", combine_swapped)
    for names, (what, instead) in REFUSED.items():
        for name in names:

            def refuse(self: Handle, *_: object, _what: str = what, _instead: str = instead) -> NoReturn:
                self._unknown(_what, _instead)

            setattr(Handle, f"__{name}__", refuse)


_install_operators()


def step(key: str | int) -> str:
    """One step of a path in an expression."""
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if MEMBER.fullmatch(key) and key not in RESERVED else f"[{json.dumps(key)}]"


def step_into(value: str, key: str | int) -> str:
    """The same, where a negative number counts from the end, as in Python."""
    return f"[size({value}) - {-key}]" if isinstance(key, int) and key < 0 else step(key)


def braces(handle: Handle) -> str:
    return f"${{{{ {handle._expression} }}}}"


def file_kind(activity: Activity, name: str) -> Holds:
    return "files" if isinstance(activity, ForEach) or name in getattr(activity, "file_lists", ()) else "file"


def missing_file(result: JobResult, name: str, known: tuple[str, ...]) -> str:
    """Why a job leaves no file of that name."""
    body = result.activity.body if isinstance(result.activity, ForEach) else result.activity
    if isinstance(body, Call):
        return f"`{result.name}` leaves no files; a called flow hands them on among its outputs"
    if not isinstance(body, JobActivity):
        return f"`{result.name}` leaves no files"
    if known and not name:
        return f"`{result.name}` leaves {len(known)} files; say which: {', '.join(known)}"
    missing = f"no file `{name}`" if name else "no files"
    return f"`{result.name}` leaves {missing}; name it in its option files={{...}}"


def template_of(value: Any, owner: object, what: str) -> Value:
    """Plain data with its handles as templates; values of Python stand as a job's result would. What no job could be
    given is refused."""
    try:
        return TemplateEncoder(owner, what).encode(value)
    except BadPythonValue as error:
        raise bad_flow(f"{what}: {error}") from None


class TemplateEncoder(PythonEncoder):
    """Writes values with handles in them, for one place of a flow."""

    _as_they_are: frozenset[type] = frozenset({bool, type(None)})

    def __init__(self, owner: object, what: str) -> None:
        super().__init__(NoFiles())
        self._owner = owner
        self._what = what

    def encode(self, value: Any) -> Value:
        if type(value) is str:
            return checked_text(value, self._what)
        if isinstance(value, Handle):
            return self._template(value)
        if isinstance(value, range):
            return list(value)
        if isinstance(value, Mapping) and any(isinstance(key, Handle) for key in value):
            return {str(key): self.encode(part) for key, part in value.items()}
        if isinstance(value, Mapping) and not isinstance(value, dict):
            return self.encode(dict(value))
        return super().encode(value)

    def _template(self, handle: Handle) -> str:
        if handle._owner is not self._owner:
            raise bad_flow(f"{self._what}: `{handle._expression}` belongs to another flow; pass it in as an input")
        handle._demand_value()
        return braces(handle)


class NoFiles:
    """A flow has no files of its own for what is large."""

    inline_bytes: int = 16384

    def write(self, name: str, kind: str, fill: Fill) -> Value:
        raise BadPythonValue(
            f"is a {kind} that is too large to stand in the flow itself; make it in a job, or take it as an input of"
            " the flow, for flow.run(...)"
        )

    def take(self, path: Path) -> Value:
        raise BadPythonValue(
            f"is the path {path} inside of other data; give a file to a parameter of its own that is a Path, or a list"
            " of them"
        )


def checked_text(text: str, what: str) -> str:
    """The text, unless a handle came into it in a way that means something else than its value."""
    if SHOWN in text:
        raise bad_flow(f"{what}: a value that is not known yet stands in a text as {{value}}, not as {{value!r}}")
    if asked := ASKED_END.search(text):
        name = asked.group(1)
        raise bad_flow(
            f"{what}: `.{name}` of a job asks how it ended, which only a condition can: when=x.{name}; the part of "
            f'its result is x["{name}"]'
        )
    return text
