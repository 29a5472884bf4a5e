"""Inputs of a job that are links into the pilot's cache, and what follows if one of them was changed.

A job with such links promises only to read them. If no other job had a link, the one that had it broke the promise: its
own result is what it made, so the server is told of it. If others had one, any of them may have read the wrong content,
so none of their results is used."""

from typing import NamedTuple

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Outcome

NAMED_MAX = 8


class LinkedInput(NamedTuple):
    """The path in the job's folder, the whole path, the digest that it has, and the file that it is a link to."""

    path: str
    target: str
    digest: str
    inode: int


class ChangedInputs(NamedTuple):
    """Paths of linked inputs that were changed: by the job that had the only links, or by any of those that had one."""

    by_it: list[str]
    by_somebody: list[str]

    def with_messages(self, raw: msgspec.Raw) -> msgspec.Raw:
        """The outcome of a job, encoded, with what is to be said about its linked inputs."""
        if not (self.by_it or self.by_somebody):
            return raw
        outcome = msgspec.msgpack.decode(raw, type=Outcome)
        changed = tuple((*self.by_it, *self.by_somebody)[:NAMED_MAX])
        measures = msgspec.structs.replace(outcome.measures, changed_inputs=changed)
        outcome = msgspec.structs.replace(outcome, measures=measures)
        if self.by_somebody and outcome.ok:
            fault = msgspec.structs.replace(_changed_fault(self.by_somebody[0]), log_tail=outcome.log_tail)
            outcome = msgspec.structs.replace(outcome, fault=fault, outputs=None)
        return msgspec.Raw(msgspec.msgpack.encode(outcome))

    @property
    def spoils_result(self) -> bool:
        return bool(self.by_somebody)


def _changed_fault(path: str) -> Fault:
    text = (
        f"its input {path} was changed while the job ran, by it or by another job with a link to the same file, so its"
        " result may be wrong and is not used: let jobs that write to their inputs have copies, without `link-inputs`"
    )
    return Fault(name="inputChanged", category=Category.RESOURCE, message=text, stage=AttemptStage.EXECUTION, file=path)
