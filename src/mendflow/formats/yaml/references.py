"""Renames references to the one job in a loop: names are unique, so it has another name than the loop. Inside an
iteration, `jobs.NAME` means its own job, and is rewritten so."""

from typing import Any

import msgspec

from mendflow.core.expressions import ExpressionError, template_parts
from mendflow.core.expressions.scanner import scan
from mendflow.core.model.expr import Expr


def rename_job(expr: Expr, old: str, new: str) -> Expr:
    """The expression with `jobs.OLD` as `jobs.NEW`."""
    scanned = scan(expr.text)
    text, shift = scanned.text, 0
    for reference in scanned.references:
        if reference.name == f"jobs.{old}":
            start = reference.offset + shift
            end = text.index(old, start) + len(old)
            opening = text[start + len("jobs") : end - len(old)]
            closing = {"`": "`", "'": "']", '"': '"]'}.get(opening.strip()[-1:], "")
            replaced = f"jobs.`{new}`"
            stop = end + len(closing)
            text = text[:start] + replaced + text[stop:]
            shift += len(replaced) - (stop - start)
    return Expr(text)


def rename_job_in(part: Any, old: str, new: str) -> Any:
    """An activity, or a part of one, with `jobs.OLD` as `jobs.NEW` in all its expressions."""
    if isinstance(part, Expr):
        return rename_job(part, old, new)
    if isinstance(part, str):
        return rename_job_in_text(part, old, new) if "${{" in part else part
    if isinstance(part, dict):
        return {rename_job_in(key, old, new): rename_job_in(value, old, new) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return type(part)(rename_job_in(each, old, new) for each in part)
    if isinstance(part, msgspec.Struct):
        fields = {field: rename_job_in(getattr(part, field), old, new) for field in part.__struct_fields__}
        return msgspec.structs.replace(part, **fields)
    return part


def rename_job_in_text(text: str, old: str, new: str) -> str:
    try:
        found = template_parts(text)
    except ExpressionError:
        return text  # it is refused elsewhere
    parts = []
    for piece in found:
        if piece.is_expression:
            parts.append(f"${{{{ {rename_job(Expr(piece.text), old, new).text} }}}}")
        else:
            parts.append(piece.text.replace("${{", "$${{"))
    return "".join(parts)
