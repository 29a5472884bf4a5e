"""The JSON Schemas of flow files, exlets and rule files, for completion and validation in editors.

They are made from the parser's tables whenever somebody asks for one: `mendflow flows schema`."""

import json
from enum import StrEnum
from typing import Any, Final

from mendflow.formats.names import NAME
from mendflow.formats.rules import rule_keys as rule_tables
from mendflow.formats.yaml import exlet_keys, flow_keys, job_bound_keys, trigger_keys
from mendflow.formats.yaml.builder import LOOPS_WITH_BODY, Kinds
from mendflow.formats.yaml.container_keys import CONTAINER_KEYS
from mendflow.formats.yaml.fields import Table, schema_of
from mendflow.formats.yaml.shapes import PresenceShape

Schema = dict[str, Any]


class SchemaKind(StrEnum):
    """The kinds of files that have a schema."""

    FLOW = "flow"
    EXLET = "exlet"
    RULES = "rules"


EXLET_BODY: Final[Schema] = {"anyOf": [{"$ref": "#/$defs/steps"}, {"$ref": "#/$defs/exlet-map"}]}
"""What an exlet is, wherever `exlet_definitions` are among the definitions."""


def exlet_schema() -> Schema:
    """An exlet in a file of its own: a list of steps, or a map with `steps:`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mendflow exlet",
        **EXLET_BODY,
        "$defs": exlet_definitions(),
    }


def rules_schema() -> Schema:
    """A rule file. Whether a name is a type's, a task's or an exlet's is for the parser to say."""
    file = schema_of(rule_tables.FILE)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mendflow rule file",
        **file,
        "$defs": {**exlet_definitions(), **rule_definitions()},
    }


def rule_definitions() -> Schema:
    model = {"type": "object", "required": [rule_tables.EXLET_MODEL]}
    tree = {"anyOf": [{"$ref": "#/$defs/rules"}, schema_of(rule_tables.FLAT)]}
    rule = {"anyOf": [schema_of(rule_tables.RULE), schema_of(rule_tables.LINKED)]}
    exlet = {"anyOf": [*EXLET_BODY["anyOf"], {"$ref": "#/$defs/step"}, model]}
    return {
        "moment": {"type": "string", "examples": ["2030-01-31T08:00:00Z"]},
        "context": {"type": ["object", "string"]},
        "condition": {"type": ["string", "boolean"], "minLength": 1},
        "rules": {"type": "array", "items": rule},
        "tree": {"anyOf": [*tree["anyOf"], {"type": "object", "additionalProperties": tree}]},
        "exlet": {"anyOf": [{"type": "string", "minLength": 1}, exlet]},
        "exlets": {"type": "object", "additionalProperties": exlet},
    }


def exlet_definitions() -> Schema:
    call = schema_of(exlet_keys.WORKLET)
    worklet = {"anyOf": [{"type": "string", "minLength": 1}, call]}
    shared = definitions(exlet_keys.KINDS)
    for word, (key, _) in exlet_keys.PRIMITIVES.items():
        if isinstance(key.shape, PresenceShape):
            properties = shared["step"]["properties"]
            properties[word] = {"anyOf": [key.shape.schema(), {"type": "object"}], "description": key.about}
    return {
        **shared,
        "exlet-map": schema_of(exlet_keys.EXLET),
        "worklets": {"anyOf": [worklet, {"type": "array", "items": worklet, "minItems": 1}]},
        "written": {"anyOf": [{"enum": ["all"]}, {"type": "object"}]},
    }


def schema() -> Schema:
    flow = schema_of(flow_keys.FLOW)
    flow["patternProperties"] = {"^x-": {"description": "Ignored; a place for anchors."}}
    flow["oneOf"] = [{"required": ["jobs"]}, {"required": ["steps"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mendflow flow file",
        **flow,
        "$defs": {
            **definitions(),
            "on": schema_of(trigger_keys.ON) | {"minProperties": 1},
            "on-files": schema_of(trigger_keys.ON_FILES),
            "on-schedule": {"anyOf": [{"type": "string"}, schema_of(trigger_keys.ON_SCHEDULE)]},
            "on-schedule-inputs": {"type": "object"},
            "on-end": schema_of(trigger_keys.ON_END),
        },
    }


def definitions(kinds: Kinds = flow_keys.KINDS) -> Schema:
    body = {"$ref": "#/$defs/body"}
    return {
        "body": {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/steps"}, {"$ref": "#/$defs/step"}]},
        "steps": {"type": "array", "items": body, "minItems": 1},
        "step": step(flow_keys.IN_STEPS, kinds),
        "job": {"anyOf": [{"type": "string", "minLength": 1}, step(flow_keys.IN_JOBS, kinds)]},
        "jobs": {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": {"$ref": "#/$defs/job"},
            "minProperties": 1,
        },
        "for-each": for_each(),
        "branches": one_or_many(
            {**schema_of(flow_keys.BRANCH), "anyOf": [required("when", "do"), required("otherwise")]}
        ),
        "catches": one_or_many(schema_of(flow_keys.CATCH)),
        "on-messages": one_or_many(schema_of(flow_keys.ON_MESSAGE)),
        "on-alarms": one_or_many(
            {**schema_of(flow_keys.ON_ALARM), "anyOf": [required("after"), required("at"), required("every")]}
        ),
        "pick": schema_of(flow_keys.PICK),
        "limits": limits_schema(),
        "container": {"anyOf": [{"type": "string", "minLength": 1}, schema_of(CONTAINER_KEYS)]},
        "retries": {
            "anyOf": [{"type": "integer", "minimum": 0}, *one_or_many(schema_of(job_bound_keys.RETRY))["anyOf"]]
        },
        "publications": {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": {"anyOf": [{"type": "string"}, schema_of(flow_keys.PUBLISHING)]},
        },
        "targets": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/publications"}]},
        "defaults": schema_of(flow_keys.DEFAULTS),
        "inputs": {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": {
                "anyOf": [{"type": ["string", "number", "boolean", "array", "null"]}, schema_of(flow_keys.INPUT)]
            },
        },
    }


def limits_schema() -> Schema:
    """The limits of a job itself, and how much it uses of named limits; or the names of these."""
    amounts: Schema = {"type": "integer", "minimum": 0, "description": "How much it uses of a named limit."}
    names: Schema = {"type": "array", "items": {"type": "string"}}
    return {"anyOf": [{**schema_of(job_bound_keys.LIMITS), "additionalProperties": amounts}, names]}


def required(*keys: str) -> Schema:
    return {"required": list(keys)}


def one_or_many(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def for_each() -> Schema:
    expression = {"type": "string", "pattern": r"\$\{\{"}
    elements = {"anyOf": [{"type": "array"}, expression]}
    full = {**schema_of(flow_keys.FOR_EACH), "oneOf": [required("items"), required("from", "to")]}
    unnamed = ("items", "from", "to", "as")
    named = {
        **schema_of({name: key for name, key in flow_keys.FOR_EACH.items() if name not in unnamed}),
        "propertyNames": {"not": {"enum": list(unnamed)}},
        "additionalProperties": {**elements, "description": "The list that this name goes over."},
    }
    return {"anyOf": [*elements["anyOf"], full, named]}


def step(also: Table, kinds: Kinds) -> Schema:
    """A step: every key that any kind has, exactly one that tells the kind, and only keys that go with it."""
    table: dict[str, Any] = {**also, **flow_keys.COMMON}
    homes: dict[str, list[str]] = {}
    for kind, (key, own) in kinds.items():
        table[kind] = key
        for name, other in own.items():
            table.setdefault(name, other)
            homes.setdefault(name, []).append(kind)
    described = schema_of(table)
    described["required"] = []
    described["oneOf"] = [one_kind(kind, kinds) for kind in kinds]
    described["dependentSchemas"] = {
        name: {"anyOf": [required(kind) for kind in homes[name]]}
        for name in homes
        if name not in kinds and name not in flow_keys.COMMON
    }
    return loosen(described, kinds)


def one_kind(kind: str, kinds: Kinds) -> Schema:
    needed = [name for name, key in kinds[kind][1].items() if key.required]
    if kind in LOOPS_WITH_BODY:
        needed.append("do")
    hosts = [other for other, (_, own) in kinds.items() if kind in own]
    if hosts:
        return {"required": [kind, *needed], "not": {"anyOf": [required(host) for host in hosts]}}
    return required(kind, *needed)


def loosen(described: Schema, kinds: Kinds) -> Schema:
    """Where two kinds have a key of one name that takes different things, either will do for an editor."""
    for name, property_schema in described["properties"].items():
        shapes = [own[name].shape.schema() for _, own in kinds.values() if name in own]
        if name in kinds:
            shapes.append(kinds[name][0].shape.schema())
        distinct = [shape for at, shape in enumerate(shapes) if shape not in shapes[:at]]
        if len(distinct) > 1:
            described["properties"][name] = {"anyOf": distinct, "description": property_schema["description"]}
    return described


def schema_text(kind: SchemaKind = SchemaKind.FLOW) -> str:
    """The schema of a kind of files, as an editor reads it."""
    make = {SchemaKind.FLOW: schema, SchemaKind.EXLET: exlet_schema, SchemaKind.RULES: rules_schema}[kind]
    return json.dumps(make(), indent=2, ensure_ascii=False) + "\n"
