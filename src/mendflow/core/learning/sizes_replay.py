"""Replays a trace of jobs: a program tells what jobs needed and asks what to give, in the order in which it happened.

A line is a JSON object: `{"ask": {...}}` is answered by `{"bytes": N}`, `{"over": {...}}` by nothing. What a job
needed is known only once it is over. Of a failed attempt it is known at once that it had too little."""

import msgspec

from mendflow.core.learning.sizes import FinishedRun, SizeModel


class ReplayedAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A job is to be given memory; `last_bytes` is what its last attempt had."""

    task: str
    input_bytes: int
    requested_bytes: int = 0
    attempt: int = 1
    last_bytes: int | None = None


class ReplayedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A job is over, and this is what it needed."""

    task: str
    input_bytes: int
    requested_bytes: int = 0
    peak_bytes: int
    runtime_ms: int = 1


class ReplayLine(msgspec.Struct, frozen=True, kw_only=True):
    ask: ReplayedAsk | None = None
    over: ReplayedEnd | None = None


class SizeReplay:
    """Sizes the jobs of one trace."""

    def __init__(self) -> None:
        self.models: dict[str, SizeModel] = {}

    def ask(self, question: ReplayedAsk) -> int:
        model = self._model(question.task)
        if question.attempt > 1 and question.last_bytes is not None:
            model.note_failure()
            return model.ask_more(question.last_bytes, question.requested_bytes).amount
        return model.ask(question.input_bytes, question.requested_bytes).amount

    def over(self, end: ReplayedEnd) -> None:
        run = FinishedRun(end.input_bytes, end.peak_bytes, end.requested_bytes, float(max(end.runtime_ms, 1)))
        self._model(end.task).learn(run)

    def _model(self, task: str) -> SizeModel:
        return self.models.setdefault(task, SizeModel())
