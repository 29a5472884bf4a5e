"""The process that reads long texts for a server, and checks long flows: it is given one after the other, and gives
back what comes of each, or why it is refused."""

import time
from pathlib import Path

import msgspec

from mendflow.core import xml
from mendflow.core.engine import compile_flow
from mendflow.core.model.errors import RequestError
from mendflow.formats import flow_texts, jsdl
from mendflow.formats.rules import xrs_texts
from mendflow.services.base.module_processes import serve_tasks
from mendflow.services.base.reading_tasks import (
    FlowText,
    FlowToCheck,
    JobText,
    ReadingRefusal,
    ReadingResult,
    ReadingTask,
    RuleText,
    RuleTrial,
)
from mendflow.services.recovery.rules.trial_evaluation import evaluated


def do(task: ReadingTask) -> ReadingResult:
    begun = time.process_time()
    try:
        found = msgspec.msgpack.encode(_read(task))
    except RequestError as error:
        return ReadingResult(refusal=ReadingRefusal.of(error), took_s=time.process_time() - begun)
    except Exception as error:  # noqa: BLE001 - one text that cannot be read must not affect the others
        return ReadingResult(problem=f"{error!r:.300}", took_s=time.process_time() - begun)
    return ReadingResult(found, took_s=time.process_time() - begun)


def _read(task: ReadingTask) -> object:
    match task:
        case FlowToCheck(flow=flow, alone=alone):
            compile_flow(flow, alone=alone)
            return None
        case FlowText(text=text, name=name, files=files):
            return flow_texts.check(text, name, files)
        case RuleText(text=text, name=name, types=types):
            return xrs_texts.read(text, name, types)
        case RuleTrial(sets=sets, exception=type, task=item, context=context):
            return evaluated(sets, type, item, context)
        case JobText(text=text, folder=folder):
            root = xml.parse(text, jsdl.RECEIVED)
            return jsdl.flow_of(root, jsdl.RECEIVED, Path(folder) if folder is not None else None)


if __name__ == "__main__":
    serve_tasks(ReadingTask, do)  # type: ignore[arg-type]  # a union of classes
