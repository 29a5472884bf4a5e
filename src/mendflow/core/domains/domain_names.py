"""Names of domains. They stand before owners and in the way of work, so they are short and plain."""

from typing import Final

from mendflow.core.model.domains import ANY_DOMAIN
from mendflow.lazy import lazy_pattern

_NAME: Final = lazy_pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_UNFIT: Final = lazy_pattern(r"[^A-Za-z0-9._-]+")
NAME_RULE: Final = "use up to 64 letters, digits, and . _ - between them"
FALLBACK: Final = "home"


def domain_name_flaw(name: str) -> str:
    """Why this cannot be the name of a domain; empty if it can."""
    if name.lower() == ANY_DOMAIN:
        return f"{name!r} is no name of a domain: in flows it means any of them"
    return "" if _NAME.fullmatch(name) else f"{name[:100]!r} is no name of a domain; {NAME_RULE}"


def domain_name_from(host: str) -> str:
    """The name of a domain that nobody has named: that of its machine, as far as it can be one."""
    name = _UNFIT.sub("-", host)[:64].strip("._-")
    return FALLBACK if domain_name_flaw(name) else name


def not_connected(name: str) -> str:
    """What is said of a name that no connected domain has."""
    return f"the domain {name[:100]!r} is not connected here; `mendflow domains` lists those that are"
