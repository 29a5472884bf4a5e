"""Templates: JSON-like data whose strings may contain `${{ expression }}`, and the parts of a job made of them.

A string that is one expression and nothing else takes the expression's value with its type; otherwise values are put
into the text. `$${{` is a literal."""

import msgspec

from mendflow.core.model.values import Value

Template = Value


class ResourceTemplates(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The resources of a job in a flow: each a number (bytes, milliseconds) or a template. Memory and time may also be
    learned: `auto`, or `auto up to 16 GB`."""

    cpus: Template = 1.0
    memory_bytes: Template = 0
    disk_bytes: Template = 0
    gpus: Template = 0
    wall_ms: Template = 0
    site: Template = ""
    hosts: Template = ()
    system: Template = ""
    machine: Template = ""


class PublicationTemplate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The logical name under which a job's file is published, or the URL to which it is written; see Publication. Each
    is a template."""

    logical: Template = ""
    element: Template = ""
    data_set: Template = ""
    url: Template = ""
    overwrite: bool = True
