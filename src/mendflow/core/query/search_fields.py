"""The names that searches know, and where each is in a document.

A name is part of the interface; a field is how a document is built today. Some names have no field and are computed
from the document: they can be searched for, but not sorted by. An omitted field has its default value here, so that a
search does not depend on how documents are written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.values import Value
from mendflow.core.query.case_text import case_text
from mendflow.core.recovery.redaction import redact

ENGINE_CASE_LIST: Final = "engine-case-list"
"""The documents by which cases of other engines are listed among this server's own."""
FOR_PERSON: Final = "for_person"
"""A name that no document has: it is worked out, from user tasks and failures that wait, when a search asks for it."""
Kind = Literal["text", "number", "truth", "duration", "size", "time", "data"]
Derivation = Callable[[Mapping[str, Value]], Value]

KIND_WORDS: Final[dict[str, str]] = {
    "text": "text",
    "number": "a number",
    "truth": "true or false",
    "duration": "a duration, such as '10m'",
    "size": "a size, such as '2GB'",
    "time": "a time, such as ago('2h') or '2026-11-15T08:00:00Z'",
    "data": "data",
}


class SearchField(NamedTuple):
    """`field` is its dotted path, if it has one; `made` works it out otherwise. `default` is what a document means that
    has no such field. `indexed_as` are values of the field that people may be shown as another: a search for that one
    has to look at these too. `only` are the states that a document must be in for the name to have a value. `values`
    are all that there are, `synonyms` other words for them."""

    name: str
    kind: Kind
    about: str
    field: str = ""
    made: Derivation | None = None
    default: Value = None
    indexed_as: Mapping[str, tuple[str, ...]] = {}
    only: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = {}


class SearchFields:
    """The names of one kind of documents, or of several that are listed as one. `only` refers to the field `state`."""

    def __init__(self, kind: str, state: str, names: Iterable[SearchField], *, and_of: tuple[str, ...] = ()) -> None:
        self.kinds = (kind, *and_of)
        self.state = state
        self.names = {each.name: each for each in names}
        self.groups: dict[str, list[SearchField]] = {}
        for each in self.names.values():
            group, dot, _ = each.name.partition(".")
            if dot:
                self.groups.setdefault(group, []).append(each)

    def roots(self) -> list[str]:
        return list(dict.fromkeys(name.partition(".")[0] for name in self.names))

    def orders(self) -> list[str]:
        """The names that results can be sorted by."""
        return [each.name for each in self.names.values() if each.field]

    def value(self, data: Mapping[str, Value], root: str) -> Value:
        """The value of a name, or a group of them, in a document; KeyError if there is no such name."""
        if root in self.groups:
            return {each.name.partition(".")[2]: value_of(each, data) for each in self.groups[root]}
        return value_of(self.names[root], data)


def value_of(name: SearchField, data: Mapping[str, Value]) -> Value:
    if name.made is not None:
        return name.made(data)
    found: Value = data
    for part in name.field.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return name.default
    return None if name.kind == "time" and found == 0 else found


def _last_attempt(part: str) -> Derivation:
    def made(data: Mapping[str, Value]) -> Value:
        history = data.get("history")
        return (history[-1].get(part) or None) if history else None

    return made


def _root_flow(data: Mapping[str, Value]) -> Value:
    """For a case, and those that it called or that mend it: the flow of the first case, which their ids name."""
    return str(data["case"]).partition(".")[0].rpartition("-")[0]


def _job_text(data: Mapping[str, Value]) -> str:
    """In small letters. With what the last attempt failed by, also where the job waits for its next try."""
    spec, outcome, history = data.get("spec") or {}, data.get("outcome") or {}, data.get("history") or ()
    fault = outcome.get("fault") or (history[-1].get("fault") if history else None) or {}
    said = data.get("id"), spec.get("item"), spec.get("element"), spec.get("owner"), fault.get("name")
    return " ".join(str(each) for each in (*said, fault.get("message")) if each).lower()


def _faults(over: tuple[str, ...], where: str) -> list[SearchField]:
    return [
        SearchField("fault.name", "text", "the fault's name", f"{where}.name", only=over),
        SearchField(
            "fault.category", "text", "where it failed: memory, time, data, job, ...", f"{where}.category", only=over
        ),
        SearchField("fault.message", "text", "the fault's sentence", f"{where}.message", only=over),
    ]


JOBS: Final = SearchFields(
    "job",
    "state",
    [
        SearchField("id", "text", "the job's id, `CASE/NUMBER`", "id"),
        SearchField("case", "text", "the case's id", "case"),
        SearchField("flow", "text", "the flow of the case that started everything", made=_root_flow),
        SearchField("item", "text", "the item that it does, as in `align[3]`", "spec.item"),
        SearchField("name", "text", "the item's name, without its iterations", "name"),
        SearchField(
            "element", "text", "what it is for, of the loops that it is in, as it is listed", "spec.element", default=""
        ),
        SearchField(
            "owner",
            "text",
            "who it is for: as its flow says by `owner`, else who started the case",
            "spec.owner",
            default="",
        ),
        SearchField(
            "state",
            "text",
            "available (or waiting, which is the same), running, completed or failed",
            "state",
            values=("available", "running", "completed", "failed"),
            synonyms={"waiting": "available"},
            default="available",
            indexed_as={"available": ("running",)},
        ),
        SearchField("project", "text", "the project of its case", "spec.project", default=DEFAULT_PROJECT),
        SearchField("suspended", "truth", "whether somebody suspends it", "suspended", default=False),
        SearchField("priority", "number", "higher ones go first", "spec.priority", default=0),
        SearchField("attempts", "number", "how often it was given to a pilot", "fence", default=0),
        SearchField("failures", "number", "attempts that failed by its own fault", "failures", default=0),
        SearchField("losses", "number", "attempts that the infrastructure lost", "losses", default=0),
        SearchField("retries", "number", "how many failures it may have", "spec.retries", default=0),
        SearchField("pilot", "text", "the pilot that has it now", "pilot"),
        SearchField("last_pilot", "text", "the pilot of its last attempt", made=_last_attempt("pilot")),
        SearchField("host", "text", "the machine of its last attempt", made=_last_attempt("host")),
        SearchField("site", "text", "the site of its last attempt", made=_last_attempt("site")),
        SearchField("created", "time", "when it was submitted", "created_at"),
        SearchField("submitted", "time", "another name for `created`", "created_at"),
        SearchField("not_before", "time", "no pilot gets it before then, after an attempt that failed", "available_at"),
        SearchField("started", "time", "when its last attempt was given to a pilot", made=_last_attempt("granted_at")),
        SearchField("finished", "time", "when it was over", "finished_at"),
        SearchField("ended", "time", "another name for `finished`", "finished_at"),
        SearchField(
            "runtime", "duration", "how long its last attempt ran, once it has ended", "outcome.measures.ran_ms"
        ),
        SearchField("cpu", "duration", "the CPU time of that attempt", "outcome.measures.cpu_ms"),
        SearchField("peak", "size", "the peak of its memory", "outcome.measures.peak_bytes"),
        SearchField("expected", "duration", "how long it was expected to run", "spec.expected_ms", default=0),
        SearchField("exit_code", "number", "of its command, once it has ended", "outcome.exit_code"),
        SearchField("command", "text", "its command", "spec.command"),
        *_faults(("failed",), "outcome.fault"),
        SearchField(
            "text",
            "text",
            "what people remember of it, in small letters: its id, its item, what it is for, who it is for, and the "
            "name and sentence of the fault by which its last attempt failed",
            made=_job_text,
        ),
        SearchField("resources.cpus", "number", "what it asks for", "spec.resources.cpus", default=1.0),
        SearchField("resources.memory", "size", "", "spec.resources.memory_bytes", default=0),
        SearchField("resources.disk", "size", "", "spec.resources.disk_bytes", default=0),
        SearchField("resources.gpus", "number", "", "spec.resources.gpus", default=0),
        SearchField("resources.wall", "duration", "", "spec.resources.wall_ms", default=0),
        SearchField("resources.site", "text", "", "spec.resources.site", default=""),
    ],
)


def _summed(part: str) -> Derivation:
    return lambda data: sum(each.get(part, 0) for each in data.get("counts") or ())


def _elapsed(begin: str, end: str) -> Derivation:
    def made(data: Mapping[str, Value]) -> Value:
        return data[end] - data[begin] if data.get(end) and data.get(begin) else None

    return made


def _given_inputs(data: Mapping[str, Value]) -> Value:
    """Without secrets, which whoever only looks could guess letter by letter."""
    return redact(data.get("inputs") or {})


CASES: Final = SearchFields(
    "case",
    "status",
    [
        SearchField("id", "text", "the case's id", "id"),
        SearchField("flow", "text", "its flow's name", "flow"),
        SearchField("digest", "text", "which version of the flow", "digest"),
        SearchField(
            "status",
            "text",
            "running, suspended, completed, failed or cancelled",
            "status",
            values=("running", "suspended", "completed", "failed", "cancelled"),
            default="running",
        ),
        SearchField("owner", "text", "who started it", "owner", default=""),
        SearchField("project", "text", "the project that it belongs to", "project", default=DEFAULT_PROJECT),
        SearchField("started", "time", "when it began", "started_at"),
        SearchField("ended", "time", "when it was over", "ended_at"),
        SearchField("runtime", "duration", "from its start to its end", made=_elapsed("started_at", "ended_at")),
        SearchField("parent", "text", "the case that called it", "parent"),
        SearchField("mends", "text", "of an exlet: the case that it mends", "mends"),
        SearchField(
            "rerun_of",
            "text",
            "the case that it runs again, or was to take results from; with `cache: none` it takes none",
            "rerun_of",
        ),
        SearchField("stands_for", "text", "the case that it runs again, and in whose place it stands", "stands_for"),
        SearchField("done", "number", "how many items are done", made=_summed("done")),
        SearchField("failed", "number", "how many items failed", made=_summed("failed")),
        SearchField("mended", "number", "how many were mended", made=_summed("mended")),
        SearchField(
            FOR_PERSON,
            "truth",
            "whether something in it, or in a case that it called, waits for a person",
            made=lambda data: bool(data.get(FOR_PERSON)),
        ),
        *_faults(("failed", "cancelled"), "fault"),
        SearchField("inputs", "data", "what it was started with, as in `inputs.sample`", made=_given_inputs),
        SearchField("outputs", "data", "what it gave", "outputs"),
        SearchField("engine", "text", "of another engine's case: that engine", "engine", default=""),
        SearchField(
            "text",
            "text",
            "what people remember of it, in small letters: its id, its flow, who started it and which schedule, the "
            "names and values of its inputs (defaults too), and by what it failed, or what failed in it and waits",
            made=case_text,
        ),
    ],
    and_of=(ENGINE_CASE_LIST,),
)


def _item_text(data: Mapping[str, Value]) -> str:
    """In small letters, so that nobody has to know how a sample is written."""
    fault = data.get("fault")
    said = (fault.get("name"), fault.get("message")) if isinstance(fault, Mapping) else ()
    return " ".join(str(each) for each in (data.get("item"), data.get("element"), *said) if each).lower()


def _is_for_person(data: Mapping[str, Value]) -> bool:
    """What failed and is held, and what a person is asked."""
    return bool(data.get("held")) or (data.get("kind") == "user-task" and data.get("state") in ("waiting", "running"))


def _length(part: str, more: int = 0) -> Derivation:
    return lambda data: len(data.get(part) or ()) + more


ITEMS: Final = SearchFields(
    "item",
    "state",
    [
        SearchField("item", "text", "the item's id in its case, as in `align[3]`", "item"),
        SearchField("name", "text", "its name, without its iterations", "name"),
        SearchField(
            "element", "text", "what it is for, of the loops that it is in, as it is listed", "element", default=""
        ),
        SearchField("kind", "text", "job, task, call, stage, ...", "kind"),
        SearchField("state", "text", "waiting, running, completed, failed, skipped, ...", "state"),
        SearchField("job", "text", "its job's id", "job"),
        SearchField("pilot", "text", "the pilot that has it now", "pilot"),
        SearchField("attempts", "number", "the attempts of all its runs", made=_length("attempts")),
        SearchField(
            "runs", "number", "1, and one more for each time that it was restarted", made=_length("earlier_runs", 1)
        ),
        SearchField("created", "time", "when it began", "created_at"),
        SearchField("ended", "time", "when it was over", "ended_at"),
        SearchField(
            "runtime",
            "duration",
            "from when it began to its end, with what it waited",
            made=_elapsed("created_at", "ended_at"),
        ),
        SearchField(
            FOR_PERSON,
            "truth",
            "whether it waits for a person: a user task, or a failure that is held",
            made=_is_for_person,
        ),
        *_faults((), "fault"),
        SearchField("command", "text", "its command", "command"),
        SearchField("outputs", "data", "what it gave", "outputs"),
        SearchField(
            "text",
            "text",
            "what people remember of it, in small letters: its id, what it is for, and its fault's name and sentence",
            made=_item_text,
        ),
    ],
)
