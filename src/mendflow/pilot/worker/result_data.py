"""The result of a function as plain data: as it is, spilled to a file, or a fault because it cannot be kept."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.references import (
    foreign_reference,
    malformed_reference,
    named_file,
    referenced_files,
    references_in,
)
from mendflow.core.model.text_masks import TextMask
from mendflow.core.model.values import VALUE_BYTES_MAX, FileRef, Value, check_value, is_spilled
from mendflow.pilot.slot.messages import FunctionCall
from mendflow.pilot.slot.outputs import spill
from mendflow.pilot.worker.value_files import MadeFiles
from mendflow.python_values.encoding import PythonEncoder
from mendflow.python_values.errors import BadPythonValue


class ResultData(NamedTuple):
    """What a call gave: its outputs, the files that they lie in or refer to, or a fault instead."""

    outputs: Value = None
    spills: list[str] = []
    content_paths: list[str] = []
    contents: tuple[FileRef, ...] = ()
    fault: Fault | None = None


def result_as_data(value: Any, call: FunctionCall, real: Callable[[Value], Value]) -> ResultData:
    """The result as plain data: as it is, spilled, or a fault because it is not data. `real` gives arguments with the
    content of spilled values."""
    if value is None:
        return ResultData()
    made = MadeFiles(call.attempt_folder)
    try:
        plain = PythonEncoder(made).encode(value)
        if why := check_value(plain):
            raise BadPythonValue(f"cannot be kept: {why}")
        if call.hidden:  # here, as nobody looks into a spilled result
            plain = TextMask.of_secrets(call.hidden).mask_value(plain)
        encoded = msgspec.json.encode(plain)
        if why := _bad_reference(encoded, plain, call, real, made):
            return ResultData(fault=_not_data(f"what {call.module}.{call.name} returned cannot be kept: {why}"))
        if len(encoded) > VALUE_BYTES_MAX:
            os.makedirs(call.attempt_folder, exist_ok=True)
            plain, path = spill(encoded, call.attempt_folder, 0)
            return ResultData(plain, [path], made.paths, tuple(made.refs))
    except BadPythonValue as error:
        return ResultData(fault=_not_data(_refusal(value, call, str(error))))
    except RecursionError:
        told = "it is nested too deep, or contains itself"
        return ResultData(fault=_not_data(_refusal(value, call, told)))
    return ResultData(plain, [], made.paths, tuple(made.refs))


def _refusal(value: Any, call: FunctionCall, why: str) -> str:
    return f"{call.module}.{call.name} returned a {type(value).__name__}, which is not data: {why}"


def _not_data(message: str) -> Fault:
    return Fault(name="notData", category=Category.OUTPUT, message=message, stage=AttemptStage.STAGE_OUT)


def _bad_reference(
    encoded: bytes, plain: Value, call: FunctionCall, real: Callable[[Value], Value], made: MadeFiles
) -> str:
    """What is wrong with references to files in a result, or nothing. The server checks what they name, unless it
    cannot: it sees neither a result that is spilled nor what a spilled argument refers to."""
    if b'"$' not in encoded:
        return ""
    if flaw := malformed_reference(plain):
        return flaw
    given = [call.args, call.kwargs]
    unseen = len(encoded) > VALUE_BYTES_MAX or any(is_spilled(reference) for _, reference in references_in(given))
    may_name = {*referenced_files(real(given)), *map(named_file, made.refs)} if unseen else set()
    return foreign_reference(plain, may_name) if unseen else ""
