"""The names that searches know, and where each is in a document.

A name is part of the interface; a field is how a document is built today. Some names have no field and are computed
from the document: they can be searched for, but not sorted by. An omitted field has its default value here, so that a
search does not depend on how documents are written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from mendflow.core.model.values import Value

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


class SearchName(NamedTuple):
    """`field` is its dotted path, if it has one; otherwise `made` computes it. `usual` is the default of an omitted
    field. `looks` are stored values that may be shown as another: a search for that one must include these. `only` are
    the states in which the name has a value. `values` are all possible ones, `also` synonyms for them."""

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


class Vocabulary:
    """The names of one kind of documents. `only` refers to the field `state`."""

    def __init__(self, kind: str, state: str, names: Iterable[SearchName]) -> None:
        self.kind = kind
        self.state = state
        self.names = {each.name: each for each in names}
        self.groups: dict[str, list[SearchName]] = {}
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


def value_of(name: SearchName, data: Mapping[str, Value]) -> Value:
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


def _faults(over: tuple[str, ...], where: str) -> list[SearchName]:
    return [
        SearchName("fault.name", "text", "the fault's name", f"{where}.name", only=over),
        SearchName(
            "fault.category", "text", "where it failed: memory, time, data, job, ...", f"{where}.category", only=over
        ),
        SearchName("fault.message", "text", "the fault's sentence", f"{where}.message", only=over),
    ]


JOBS: Final = Vocabulary(
    "job",
    "state",
    [
        SearchName("id", "text", "the job's id, `CASE/NUMBER`", "id"),
        SearchName("case", "text", "the case's id", "case"),
        SearchName("flow", "text", "the flow of the case that started everything", made=_root_flow),
        SearchName("item", "text", "the item that it does, as in `align[3]`", "spec.item"),
        SearchName("name", "text", "the item's name, without its iterations", "name"),
        SearchName(
            "owner",
            "text",
            "who it is for: as its flow says by `owner`, else who started the case",
            "spec.owner",
            default="",
        ),
        SearchName(
            "state",
            "text",
            "available (or waiting, which is the same), running, completed or failed",
            "state",
            values=("available", "running", "completed", "failed"),
            synonyms={"waiting": "available"},
            default="available",
            indexed_as={"available": ("running",)},
        ),
        SearchName("suspended", "truth", "whether somebody suspends it", "suspended", default=False),
        SearchName("priority", "number", "higher ones go first", "spec.priority", default=0),
        SearchName("attempts", "number", "how often it was given to a pilot", "fence", default=0),
        SearchName("failures", "number", "attempts that failed by its own fault", "failures", default=0),
        SearchName("losses", "number", "attempts that the infrastructure lost", "losses", default=0),
        SearchName("retries", "number", "how many failures it may have", "spec.retries", default=0),
        SearchName("pilot", "text", "the pilot that has it now", "pilot"),
        SearchName("last_pilot", "text", "the pilot of its last attempt", made=_last_attempt("pilot")),
        SearchName("host", "text", "the machine of its last attempt", made=_last_attempt("host")),
        SearchName("site", "text", "the site of its last attempt", made=_last_attempt("site")),
        SearchName("created", "time", "when it was submitted", "created_at"),
        SearchName("started", "time", "when its last attempt was given to a pilot", made=_last_attempt("granted_at")),
        SearchName("finished", "time", "when it ended", "finished_at"),
        SearchName(
            "runtime", "duration", "how long its last attempt ran, once it has ended", "outcome.measures.ran_ms"
        ),
        SearchName("cpu", "duration", "the CPU time of that attempt", "outcome.measures.cpu_ms"),
        SearchName("peak", "size", "the peak of its memory", "outcome.measures.peak_bytes"),
        SearchName("expected", "duration", "how long it was expected to run", "spec.expected_ms", default=0),
        SearchName("exit_code", "number", "of its command, once it has ended", "outcome.exit_code"),
        SearchName("command", "text", "its command", "spec.command"),
        *_faults(("failed",), "outcome.fault"),
        SearchName("resources.cpus", "number", "what it asks for", "spec.resources.cpus", default=1.0),
        SearchName("resources.memory", "size", "", "spec.resources.memory_bytes", default=0),
        SearchName("resources.disk", "size", "", "spec.resources.disk_bytes", default=0),
        SearchName("resources.gpus", "number", "", "spec.resources.gpus", default=0),
        SearchName("resources.wall", "duration", "", "spec.resources.wall_ms", default=0),
        SearchName("resources.site", "text", "", "spec.resources.site", default=""),
    ],
)


def _summed(part: str) -> Derivation:
    return lambda data: sum(each.get(part, 0) for each in data.get("counts") or ())


def _elapsed(begin: str, end: str) -> Derivation:
    def made(data: Mapping[str, Value]) -> Value:
        return data[end] - data[begin] if data.get(end) and data.get(begin) else None

    return made


CASES: Final = Vocabulary(
    "case",
    "status",
    [
        SearchName("id", "text", "the case's id", "id"),
        SearchName("flow", "text", "its flow's name", "flow"),
        SearchName("digest", "text", "which version of the flow", "digest"),
        SearchName(
            "status",
            "text",
            "running, suspended, completed, failed or cancelled",
            "status",
            values=("running", "suspended", "completed", "failed", "cancelled"),
            default="running",
        ),
        SearchName("owner", "text", "who started it", "owner", default=""),
        SearchName("started", "time", "when it began", "started_at"),
        SearchName("ended", "time", "when it ended", "ended_at"),
        SearchName("runtime", "duration", "from its start to its end", made=_elapsed("started_at", "ended_at")),
        SearchName("parent", "text", "the case that called it", "parent"),
        SearchName("mends", "text", "of an exlet: the case that it mends", "mends"),
        SearchName("rerun_of", "text", "the case that it runs again", "rerun_of"),
        SearchName("done", "number", "how many items are done", made=_summed("done")),
        SearchName("failed", "number", "how many items failed", made=_summed("failed")),
        SearchName("mended", "number", "how many were mended", made=_summed("mended")),
        *_faults(("failed", "cancelled"), "fault"),
        SearchName("inputs", "data", "what it was started with, as in `inputs.sample`", "inputs"),
        SearchName("outputs", "data", "what it gave", "outputs"),
    ],
)


def _length(part: str, more: int = 0) -> Derivation:
    return lambda data: len(data.get(part) or ()) + more


ITEMS: Final = Vocabulary(
    "item",
    "state",
    [
        SearchName("item", "text", "the item's id in its case, as in `align[3]`", "item"),
        SearchName("name", "text", "its name, without its iterations", "name"),
        SearchName("kind", "text", "job, task, call, stage, ...", "kind"),
        SearchName("state", "text", "waiting, running, completed, failed, skipped, ...", "state"),
        SearchName("job", "text", "its job's id", "job"),
        SearchName("pilot", "text", "the pilot that has it now", "pilot"),
        SearchName("attempts", "number", "the attempts of all its runs", made=_length("attempts")),
        SearchName(
            "runs", "number", "1, and one more for each time that it was restarted", made=_length("earlier_runs", 1)
        ),
        SearchName("created", "time", "when it began", "created_at"),
        SearchName("ended", "time", "when it ended", "ended_at"),
        SearchName("runtime", "duration", "from its start to its end", made=_elapsed("created_at", "ended_at")),
        *_faults((), "fault"),
        SearchName("command", "text", "its command", "command"),
        SearchName("outputs", "data", "what it gave", "outputs"),
    ],
)
