"""What Schemathesis is told about this API. It loads this module itself, in its own process.

A request that fits the description may mean nothing, as a condition that cannot be parsed: that is answered with 400
or 422 too. What must not be is a refusal for its shape, which names the field of each problem: that is a check."""

import atexit
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.openapi.checks import IgnoredAuth
from schemathesis.specs.openapi.schemas import OpenApiSchema

COUNTS: Final = "MENDFLOW_FUZZ_COUNTS"
"""The variable with the file that gets how often each operation was answered with which status."""
PACKED: Final = "application/vnd.msgpack"
NO_SUCH_BATCH: Final = "lsf"
WAIT_MS_MAX: Final = 60_000
COVERED_MAX: Final = 40
"""So many requests that fit, and as many that do not, are sent to cover an operation: of a body that can stand in
itself, as that of a flow, there are hundreds of thousands."""

_answers: Counter[str] = Counter()


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """This server has tokens: without one, only what anybody may ask is answered."""
    raw_schema["security"] = [{"token": []}]


_every_case = OpenApiSchema.iter_coverage_cases


def _some_cases(
    schema: OpenApiSchema,
    operation: schemathesis.APIOperation[Any, Any, Any, Any],
    *,
    generation_modes: Any,
    **more: Any,
) -> Iterator[schemathesis.Case[Any]]:
    for mode in generation_modes:
        for case in islice(_every_case(schema, operation, generation_modes=[mode], **more), COVERED_MAX):
            case.query = _at_once(case.query)  # these cases go past the hooks
            yield case


# Schemathesis has no setting for this, and makes all cases of an operation before it sends the first.
OpenApiSchema.iter_coverage_cases = _some_cases  # type: ignore[assignment, method-assign]  # as the line above says


@schemathesis.hook
def after_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], response: schemathesis.Response
) -> None:
    _answers[f"{case.operation.label} {response.status_code}"] += 1


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext, failure: Failure, case: schemathesis.Case[Any], response: schemathesis.Response
) -> bool:
    """Whoever sends many unknown tokens is refused with 429 after a while, which is no way in either."""
    return not (isinstance(failure, IgnoredAuth) and "got `429 " in failure.message)


@schemathesis.hook
def map_query(context: schemathesis.HookContext, query: Any) -> Any:
    return _at_once(query)


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """A site that this machine can serve would start pilots here."""
    operation = context.operation
    if operation is None or operation.label != "PUT /api/v1/sites/{name}" or not isinstance(body, dict):
        return _at_once(body)
    batch = body.get("batch", {})
    return {**body, "batch": {**batch, "kind": NO_SUCH_BATCH}} if isinstance(batch, dict) else body


def _at_once(given: Any) -> Any:
    """Whoever asks the server to hold an answer back gets it after a moment."""
    wait = str(given.get("wait_ms")) if isinstance(given, Mapping) else ""
    return {**given, "wait_ms": 1} if wait.isdecimal() and 0 < int(wait) <= WAIT_MS_MAX else given


@schemathesis.serializer("application/gzip")
def as_bytes(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.serializer(PACKED)
def pack(context: schemathesis.SerializationContext, value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except OverflowError:  # MessagePack writes integers of 64 bits
        return msgspec.msgpack.encode(json.loads(json.dumps(value), parse_int=_within_64_bits))


def _within_64_bits(digits: str) -> int:
    return max(-(2**63), min(int(digits), 2**64 - 1))


@schemathesis.deserializer(PACKED)
def unpack(context: schemathesis.DeserializationContext, response: schemathesis.Response) -> Any:
    return msgspec.to_builtins(msgspec.msgpack.decode(response.content))


NO_NUL = "the character NUL"
"""No text has it, which the description says of all texts at once and not in each schema."""


@schemathesis.check
def fitting_is_not_refused_for_its_shape(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> bool | None:
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return None
    told = response.json()
    problems = [each for each in told["fields"].get("problems", ()) if isinstance(each, dict)]
    fields = [each["field"] for each in problems if NO_NUL not in each["message"]]
    assert not fields, f"it fits the description, and was refused for its shape: {told['message']}"
    return None


@atexit.register
def _write_counts() -> None:
    if path := os.environ.get(COUNTS):
        Path(path).write_text(json.dumps(_answers))
