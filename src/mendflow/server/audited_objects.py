"""What a request is about, where its path does not say so: for the record of who did what.

Most operations name in their path what they change, and most others in what they declare as their subject. The rest is
here, so that no entry of the record is about nothing."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mendflow.operations.operation import ApiOperation

Arguments = Mapping[str, Any]
NAMES_MAX: Final = 10
"""So many names of a request are put on record; an entry is bounded anyway."""

SINGLE_OBJECTS: Final = {
    "charge_domain": "this domain",
    "put_learning_settings": "learning settings",
    "recount_learning": "learning statistics",
    "set_fair_share": "fair share",
    "export_audit": "audit log",
    "import_archive": "archive",
    **dict.fromkeys(("create_sign_in_code", "sign_in", "sign_out"), "own session"),
}
"""There is one of each, or one of each caller."""


def _joined(names: Any) -> str:
    return " ".join(str(each) for each in list(names)[:NAMES_MAX])


def _pruned(given: Arguments) -> str:
    request = given["request"]
    return _joined(request.cases) or _joined(f"flow={each.flow or '*'}" for each in request.rules) or "no case"


def _dropped(given: Arguments) -> str:
    return _joined(f"{name}={given[name]}" for name in ("case", "flow", "name", "unused_ms") if given[name]) or "every"


def _exported(given: Arguments) -> str:
    return _joined(given.get("case") or ()) or str(given.get("where", "")) or "everything"


def _webhook(given: Arguments) -> str:
    """Its name, or where it leads: the rest of such an address is often a secret."""
    wish = given["wish"]
    return str(wish.name or urlsplit(wish.url).hostname or wish.url.partition(":")[0])


OBJECTS: Final[dict[str, Callable[[Arguments], str]]] = {
    "create_token": lambda given: given["request"].name,
    "add_patterns": lambda given: (
        _joined(each.name for each in (*given["patterns"].conversations, *given["patterns"].repairs)) or "patterns"
    ),
    "register_compensation": lambda given: given["task"],
    "put_element": lambda given: given["element"].name,
    "add_webhook": _webhook,
    "prune": _pruned,
    "drop_results": _dropped,
    "export": _exported,
    **{name: lambda _given, named=named: named for name, named in SINGLE_OBJECTS.items()},  # type: ignore[misc]  # the default binds the name
}


def object_of(operation: ApiOperation, arguments: Arguments) -> str:
    """What an operation is about whose path names nothing; empty if the path does."""
    if "{" in operation.path:
        return _item_of(arguments)
    if (find := OBJECTS.get(operation.name)) is not None:
        return str(find(arguments))
    subject = operation.subject
    if subject is None or not subject.is_single or subject.argument not in arguments:
        return ""
    given = arguments[subject.argument]
    if subject.kind == "rule draft":
        return str(given.rules or given.decision or given.group)
    return str(getattr(given, subject.field) if subject.field else given)


def _item_of(arguments: Arguments) -> str:
    """The item of a case, if it is only about that one."""
    case, item = arguments.get("case"), arguments.get("item") or getattr(arguments.get("wish"), "item", "")
    return f"{case}:{item}" if case and item and isinstance(item, str) else ""
