"""The names that searches know, and where each stands in a document.

A name is a promise to people; a field is how a document is built today. Some names have no field of their own and are
worked out from the document: they can be asked for, and not ordered by. What a document leaves out because it is the
usual value has that value here, so that a search never sees how documents are written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from mendflow.core.model.values import Value

Kind = Literal["text", "number", "truth", "duration", "size", "time", "data"]
Made = Callable[[Mapping[str, Value]], Value]

KIND_WORDS: Final[dict[str, str]] = {
    "text": "text",
    "number": "a number",
    "truth": "true or false",
    "duration": "a duration, such as '10m'",
    "size": "a size, such as '2GB'",
    "time": "a time, such as ago('2h') or '2026-11-15T08:00:00Z'",
    "data": "data",
}


class Name(NamedTuple):
    """`field` is its dotted path, if it has one; `made` works it out otherwise. `usual` is what a document means that
    has no such field. `looks` are values of the field that people may be shown as another: a search for that one has to
    look at these too. `only` are the states that a document must be in for the name to have a value. `values` are all
    that there are, `also` other words for them."""

    name: str
    kind: Kind
    about: str
    field: str = ""
    made: Made | None = None
    usual: Value = None
    looks: Mapping[str, tuple[str, ...]] = {}
    only: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    also: Mapping[str, str] = {}


class Vocabulary:
    """The names of one kind of documents. `state` is the field that `only` speaks of."""

    def __init__(self, kind: str, state: str, names: Iterable[Name]) -> None:
        self.kind = kind
        self.state = state
        self.names = {each.name: each for each in names}
        self.groups: dict[str, list[Name]] = {}
        for each in self.names.values():
            group, dot, _ = each.name.partition(".")
            if dot:
                self.groups.setdefault(group, []).append(each)

    def roots(self) -> list[str]:
        return list(dict.fromkeys(name.partition(".")[0] for name in self.names))

    def orders(self) -> list[str]:
        """The names that an answer can be ordered by."""
        return [each.name for each in self.names.values() if each.field]

    def value(self, data: Mapping[str, Value], root: str) -> Value:
        """What a name, or a group of them, is in a document; KeyError if there is no such name."""
        if root in self.groups:
            return {each.name.partition(".")[2]: value_of(each, data) for each in self.groups[root]}
        return value_of(self.names[root], data)


def value_of(name: Name, data: Mapping[str, Value]) -> Value:
    if name.made is not None:
        return name.made(data)
    found: Value = data
    for part in name.field.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return name.usual
    return None if name.kind == "time" and found == 0 else found


def _last(part: str) -> Made:
    def made(data: Mapping[str, Value]) -> Value:
        history = data.get("history")
        return (history[-1].get(part) or None) if history else None

    return made


def _root_flow(data: Mapping[str, Value]) -> Value:
    """Of a case, and of those that it called or that mend it: the flow of the first of them, which their ids name."""
    return str(data["case"]).partition(".")[0].rpartition("-")[0]


def _faults(over: tuple[str, ...], where: str) -> list[Name]:
    return [
        Name("fault.name", "text", "the fault's name", f"{where}.name", only=over),
        Name("fault.category", "text", "where it failed: memory, time, data, job, ...", f"{where}.category", only=over),
        Name("fault.message", "text", "the fault's sentence", f"{where}.message", only=over),
    ]


JOBS: Final = Vocabulary(
    "job",
    "state",
    [
        Name("id", "text", "the job's id, `CASE/NUMBER`", "id"),
        Name("case", "text", "the case's id", "case"),
        Name("flow", "text", "the flow of the case that everything began with", made=_root_flow),
        Name("item", "text", "the item that it does, as in `align[3]`", "spec.item"),
        Name("name", "text", "the item's name, without its iterations", "name"),
        Name(
            "owner",
            "text",
            "who it is for: as its flow says by `owner`, else who started the case",
            "spec.owner",
            usual="",
        ),
        Name(
            "state",
            "text",
            "available (or waiting, which is the same), running, completed or failed",
            "state",
            values=("available", "running", "completed", "failed"),
            also={"waiting": "available"},
            usual="available",
            looks={"available": ("running",)},
        ),
        Name("suspended", "truth", "whether somebody keeps it from going on", "suspended", usual=False),
        Name("priority", "number", "higher ones go first", "spec.priority", usual=0),
        Name("attempts", "number", "how often a pilot was given it", "fence", usual=0),
        Name("failures", "number", "attempts that failed by its own fault", "failures", usual=0),
        Name("losses", "number", "attempts that the infrastructure lost", "losses", usual=0),
        Name("retries", "number", "how many failures it may have", "spec.retries", usual=0),
        Name("pilot", "text", "the pilot that has it now", "pilot"),
        Name("last_pilot", "text", "the pilot of its last attempt", made=_last("pilot")),
        Name("host", "text", "the machine of its last attempt", made=_last("host")),
        Name("site", "text", "the site of its last attempt", made=_last("site")),
        Name("created", "time", "when it was submitted", "created_at"),
        Name("started", "time", "when its last attempt was given to a pilot", made=_last("granted_at")),
        Name("finished", "time", "when it was over", "finished_at"),
        Name("runtime", "duration", "how long its last attempt ran, when it is over", "outcome.measures.ran_ms"),
        Name("cpu", "duration", "the CPU time of that attempt", "outcome.measures.cpu_ms"),
        Name("peak", "size", "the most memory that it had", "outcome.measures.peak_bytes"),
        Name("expected", "duration", "how long it was expected to run", "spec.expected_ms", usual=0),
        Name("exit_code", "number", "of its command, when it is over", "outcome.exit_code"),
        Name("command", "text", "its command", "spec.command"),
        *_faults(("failed",), "outcome.fault"),
        Name("resources.cpus", "number", "what it asks for", "spec.resources.cpus", usual=1.0),
        Name("resources.memory", "size", "", "spec.resources.memory_bytes", usual=0),
        Name("resources.disk", "size", "", "spec.resources.disk_bytes", usual=0),
        Name("resources.gpus", "number", "", "spec.resources.gpus", usual=0),
        Name("resources.wall", "duration", "", "spec.resources.wall_ms", usual=0),
        Name("resources.site", "text", "", "spec.resources.site", usual=""),
    ],
)


def _summed(part: str) -> Made:
    return lambda data: sum(each.get(part, 0) for each in data.get("counts") or ())


def _took(begin: str, end: str) -> Made:
    def made(data: Mapping[str, Value]) -> Value:
        return data[end] - data[begin] if data.get(end) and data.get(begin) else None

    return made


CASES: Final = Vocabulary(
    "case",
    "status",
    [
        Name("id", "text", "the case's id", "id"),
        Name("flow", "text", "its flow's name", "flow"),
        Name("digest", "text", "which version of the flow", "digest"),
        Name(
            "status",
            "text",
            "running, suspended, completed, failed or cancelled",
            "status",
            values=("running", "suspended", "completed", "failed", "cancelled"),
            usual="running",
        ),
        Name("owner", "text", "who started it", "owner", usual=""),
        Name("started", "time", "when it began", "started_at"),
        Name("ended", "time", "when it was over", "ended_at"),
        Name("runtime", "duration", "from its beginning to its end", made=_took("started_at", "ended_at")),
        Name("parent", "text", "the case that called it", "parent"),
        Name("mends", "text", "of an exlet: the case that it mends", "mends"),
        Name("rerun_of", "text", "the case that it runs again", "rerun_of"),
        Name("done", "number", "how many items are done", made=_summed("done")),
        Name("failed", "number", "how many items failed", made=_summed("failed")),
        Name("mended", "number", "how many were mended", made=_summed("mended")),
        *_faults(("failed", "cancelled"), "fault"),
        Name("inputs", "data", "what it was started with, as in `inputs.sample`", "inputs"),
        Name("outputs", "data", "what it gave", "outputs"),
    ],
)


def _length(part: str, more: int = 0) -> Made:
    return lambda data: len(data.get(part) or ()) + more


ITEMS: Final = Vocabulary(
    "item",
    "state",
    [
        Name("item", "text", "the item's id in its case, as in `align[3]`", "item"),
        Name("name", "text", "its name, without its iterations", "name"),
        Name("kind", "text", "job, task, call, stage, ...", "kind"),
        Name("state", "text", "waiting, running, completed, failed, skipped, ...", "state"),
        Name("job", "text", "its job's id", "job"),
        Name("pilot", "text", "the pilot that has it now", "pilot"),
        Name("attempts", "number", "the attempts of all its runs", made=_length("attempts")),
        Name("runs", "number", "1, and one more for each time that it was restarted", made=_length("earlier_runs", 1)),
        Name("created", "time", "when it began", "created_at"),
        Name("ended", "time", "when it was over", "ended_at"),
        Name("runtime", "duration", "from its beginning to its end", made=_took("created_at", "ended_at")),
        *_faults((), "fault"),
        Name("command", "text", "its command", "command"),
        Name("outputs", "data", "what it gave", "outputs"),
    ],
)
