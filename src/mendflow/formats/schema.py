"""The JSON Schema of flow files, for editors: completion, and complaints while typing.

It is made of the tables that the parser reads by. `python -m mendflow.formats.schema` writes it into the package."""

import json
from pathlib import Path
from typing import Any, Final

from mendflow.formats.names import NAME
from mendflow.formats.yaml import tables
from mendflow.formats.yaml.fields import Table, schema_of

Schema = dict[str, Any]
PATH: Final = Path(__file__).with_name("flow.schema.json")
LOOPS: Final = ("while", "until")


def schema() -> Schema:
    flow = schema_of(tables.FLOW)
    flow["patternProperties"] = {"^x-": {"description": "Ignored; a place for anchors."}}
    flow["oneOf"] = [{"required": ["jobs"]}, {"required": ["steps"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mendflow flow file",
        **flow,
        "$defs": definitions(),
    }


def definitions() -> Schema:
    body = {"$ref": "#/$defs/body"}
    return {
        "body": {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/steps"}, {"$ref": "#/$defs/step"}]},
        "steps": {"type": "array", "items": body, "minItems": 1},
        "step": step(tables.IN_STEPS),
        "job": {"anyOf": [{"type": "string", "minLength": 1}, step(tables.IN_JOBS)]},
        "jobs": {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": {"$ref": "#/$defs/job"},
            "minProperties": 1,
        },
        "for-each": for_each(),
        "branches": one_or_many({**schema_of(tables.BRANCH), "anyOf": [required("when", "do"), required("otherwise")]}),
        "catches": one_or_many(schema_of(tables.CATCH)),
        "on-messages": one_or_many(schema_of(tables.ON_MESSAGE)),
        "on-alarms": one_or_many(
            {**schema_of(tables.ON_ALARM), "anyOf": [required("after"), required("at"), required("every")]}
        ),
        "pick": schema_of(tables.PICK),
        "limits": schema_of(tables.LIMITS),
        "defaults": schema_of(tables.DEFAULTS),
        "inputs": {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": {
                "anyOf": [{"type": ["string", "number", "boolean", "array", "null"]}, schema_of(tables.INPUT)]
            },
        },
    }


def required(*keys: str) -> Schema:
    return {"required": list(keys)}


def one_or_many(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def for_each() -> Schema:
    full = {**schema_of(tables.FOR_EACH), "oneOf": [required("items"), required("from", "to")]}
    expression = {"type": "string", "pattern": r"\$\{\{"}
    return {"anyOf": [{"type": "array"}, expression, full]}


def step(also: Table) -> Schema:
    """A step: every key that any kind has, exactly one that tells the kind, and only keys that go with it."""
    table: dict[str, Any] = {**also, **tables.COMMON}
    homes: dict[str, list[str]] = {}
    for kind, (key, own) in tables.KINDS.items():
        table[kind] = key
        for name, other in own.items():
            table.setdefault(name, other)
            homes.setdefault(name, []).append(kind)
    described = schema_of(table)
    described["required"] = []
    described["oneOf"] = [one_kind(kind) for kind in tables.KINDS]
    described["dependentSchemas"] = {
        name: {"anyOf": [required(kind) for kind in kinds]} for name, kinds in homes.items() if name not in tables.KINDS
    }
    return loosen(described)


def one_kind(kind: str) -> Schema:
    needed = [name for name, key in tables.KINDS[kind][1].items() if key.required]
    if kind in LOOPS:
        needed.append("do")
    if kind == "do":
        return {"required": ["do"], "not": {"anyOf": [required(loop) for loop in LOOPS]}}
    return required(kind, *needed)


def loosen(described: Schema) -> Schema:
    """Where two kinds have a key of one name that takes different things, either will do for an editor."""
    for name, property_schema in described["properties"].items():
        shapes = [own[name].shape.schema() for _, own in tables.KINDS.values() if name in own]
        if name in tables.KINDS:
            shapes.append(tables.KINDS[name][0].shape.schema())
        distinct = [shape for at, shape in enumerate(shapes) if shape not in shapes[:at]]
        if len(distinct) > 1:
            described["properties"][name] = {"anyOf": distinct, "description": property_schema["description"]}
    return described


def schema_text() -> str:
    """The schema as the file has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
