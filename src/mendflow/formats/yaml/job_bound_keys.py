"""Keys of a flow file that bound a job: what it may not exceed, and how often it is tried again."""

from typing import Final

from mendflow.formats.yaml.fields import Key, Table
from mendflow.formats.yaml.shapes import ListOf, MeasureShape, NumberShape, TextShape

LIMITS: Final[Table] = {
    "open-files": Key(NumberShape(whole=True), "How many files the job may have open at once."),
    "file-size": Key(MeasureShape("size"), "How large a file the job may write."),
    "processes": Key(NumberShape(whole=True), "How many processes the job's user may have."),
    "cpu-time": Key(MeasureShape("duration"), "How long a process of the job may compute."),
    "stack": Key(MeasureShape("size"), "How large the stack of a process may be."),
    "data-segment": Key(MeasureShape("size"), "How large the data segment of a process may be."),
    "locked-memory": Key(MeasureShape("size"), "How much memory a process may lock."),
    "virtual-memory": Key(MeasureShape("size"), "How much memory a process may have mapped."),
    "core-dump": Key(MeasureShape("size"), "How large a core dump may be; `0 B` for none."),
}
RETRY: Final[Table] = {
    "times": Key(NumberShape(whole=True), "How many times it is tried again.", required=True),
    "wait": Key(MeasureShape("duration"), "How long to wait before; nothing unless given."),
    "factor": Key(NumberShape(least=1), "How much longer each further wait is; 2 unless given."),
    "on": Key(
        ListOf(
            TextShape("an exit code, `memory`, `time`, or the name of a fault", template=False),
            single=True,
            expected="an exit code, `memory`, `time`, the name of a fault, or a list of these",
        ),
        "After which failures: exit codes, `memory`, `time`, names of faults; all of the job's own unless given.",
    ),
}
