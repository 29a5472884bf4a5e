"""The API's description as one page that needs nothing from the network."""

import html
import json
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
h2 { margin-top: 2.5rem; text-transform: capitalize; }
details { border: 1px solid #d5dce4; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; } code, pre { font: 13px/1.45 ui-monospace, monospace; }
b.m { display: inline-block; width: 4rem; color: #0b63a5; } span.s { color: #596775; margin-left: .8rem; }
pre { background: #f4f6f8; padding: .6rem; overflow: auto; } td { padding: .1rem .8rem .1rem 0; vertical-align: top; }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #dde4ea; } pre { background: #1d2329; } details { border-color: #38424c; }
}
"""


def page_of(description: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    body = "".join(f"<h2>{_text(tag)}</h2>{''.join(parts)}" for tag, parts in sorted(groups.items()))
    schemas = "".join(_schema(name, schema) for name, schema in sorted(description["components"]["schemas"].items()))
    title = f"{description['info']['title']} {description['info']['version']}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{_text(title)}: HTTP API</title>"
        f"<style>{_STYLE}</style><h1>{_text(title)}: HTTP API</h1>"
        f'<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>'
        f"{body}<h2>schemas</h2>{schemas}</html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{_text(one['name'])}</code><td>{_text(one['in'])}<td>{_text(one.get('description', ''))}"
        for one in operation.get("parameters", ())
    )
    return (
        f"<details><summary><b class=m>{method.upper()}</b><code>{_text(path)}</code>"
        f"<span class=s>{_text(operation['summary'])}</span></summary>"
        f"<p>{_text(operation.get('description', ''))}</p><table>{rows}</table>"
        f"<p>{_bodies('Body', operation.get('requestBody'))}{_bodies('Answer', _good(operation))}</p></details>"
    )


def _good(operation: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, dict[str, Any]] = operation["responses"]
    return next(answer for status, answer in answers.items() if status.startswith("2"))


def _bodies(word: str, body: dict[str, Any] | None) -> str:
    content = (body or {}).get("content", {})
    return "".join(
        f"{word}: <code>{_text(kind)}</code> {_link(given['schema'])}<br>" for kind, given in content.items()
    )


def _link(schema: dict[str, Any]) -> str:
    many = "items" in schema
    ref = (schema["items"] if many else schema).get("$ref", "")
    name = _text(ref.rpartition("/")[2])
    return f'{"a list of " if many else ""}<a href="#{name}">{name}</a>' if name else ""


def _schema(name: str, schema: dict[str, Any]) -> str:
    shown = _text(json.dumps(schema, indent=2))
    return f"<details id={_text(name)}><summary><code>{_text(name)}</code></summary><pre>{shown}</pre></details>"


def _text(value: str) -> str:
    return html.escape(value)
