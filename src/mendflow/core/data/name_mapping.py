"""The trivial file catalogue: maps logical names to places by rules, and back.

A rule with a chain also applies the rules of another protocol: before itself on the way to a place, and after itself on
the way back. So `srm` can be `direct` with a prefix, in both directions. The first matching rule counts, and its result
must be below its element.

Untrusted names meet administrators' patterns here, and a slow match would block the server. So RE2 matches them, in
time linear in the name's length; each protocol's rules are applied once per name; and results are bounded."""

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal

from mendflow.core.data.paths import OutsideElement, name_flaw, path_inside, place_below, root_of
from mendflow.core.model.data import NameRule, NameRules, Replica, StorageElement
from mendflow.lazy import LazyModule, lazy_pattern

if TYPE_CHECKING:
    import re2
else:
    re2 = LazyModule("re2")

RULES_MAX: Final = 1_000
PATTERN_CHARS_MAX: Final = 1_000
MADE_CHARS_MAX: Final = 4_000
CHAINS_MAX: Final = 20
_GROUP: Final = lazy_pattern(r"\$([1-9])")
_HALF: Final = lazy_pattern("[\ud800-\udfff]")

Direction = Literal["in", "out"]


def physical_place(rules: NameRules, protocol: str, name: str, site: str = "") -> str | None:
    """The place of a logical name by the rules, not validated; None if none matches."""
    return _apply(rules.to_physical, protocol, name, site, "in", CHAINS_MAX, {})


def logical_name_at(rules: NameRules, protocol: str, place: str) -> str | None:
    """The logical name of a place, not validated; None if no rule matches."""
    return _apply(rules.to_logical, protocol, place, "", "out", CHAINS_MAX, {})


def _apply(
    rules: tuple[NameRule, ...],
    protocol: str,
    text: str,
    site: str,
    way: Direction,
    chains: int,
    made: dict[str, str | None],
) -> str | None:
    """`made` caches what protocols have made of the name."""
    if not chains or not _is_readable(text):
        return None
    for rule in rules:
        if rule.protocol != protocol or not _compile(rule.destination).fullmatch(site):
            continue
        given: str | None = text
        if rule.chain and way == "in":
            if rule.chain not in made:
                made[rule.chain] = _apply(rules, rule.chain, text, site, way, chains - 1, made)
            given = made[rule.chain]
        found = _compile(rule.match).fullmatch(given) if given is not None else None
        if found is None:
            continue
        result = _GROUP.sub(partial(_group, found.groups("")), rule.result)
        if rule.chain and way == "out":
            return _apply(rules, rule.chain, result, site, way, chains - 1, made)
        return result if _is_readable(result) else None
    return None


def _is_readable(text: str) -> bool:
    """Whether rules can process it: not too long, and valid Unicode."""
    return len(text) <= MADE_CHARS_MAX and not _HALF.search(text)


def _group(groups: tuple[str, ...], named: re.Match[str]) -> str:
    number = int(named.group(1))
    return groups[number - 1] if number <= len(groups) else ""


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> Any:
    """Raises `re2.error`, without logging."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def place_of(element: StorageElement, name: str, site: str = "") -> str:
    """The URL of a logical file on an element. Raises OutsideElement if the element has no place for it."""
    if flaw := name_flaw(name):
        raise OutsideElement(f"{name!r:.200} is not a logical name: {flaw}", field="name")
    if element.rules is None:
        return place_below(element.url, name[1:])
    made = physical_place(element.rules, element.protocol, name, site)
    if made is None:
        raise OutsideElement(f"storage element {element.name} has no rule for {name}; add one", field="rules")
    return place_below(element.url, path_inside(element.url, _as_url(element.url, made)))


def replica_place(element: StorageElement, name: str, replica: Replica, site: str = "") -> str:
    """The URL of a replica."""
    return place_below(element.url, replica.path) if replica.path else place_of(element, name, site)


def _as_url(url: str, made: str) -> str:
    """A rule's result as a URL: it is a URL itself, an absolute path at the element's host, or a path below the
    element."""
    if "://" in made:
        return made
    return f"{_authority(url)}{made}" if made.startswith("/") else f"{root_of(url)}/{made}"


def _authority(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('/', maxsplit=1)[0]}"


def name_at(element: StorageElement, path: str) -> str:
    """The logical name of a path below an element. Rules are tried on the whole URL, then on the path on its host, then
    on the path below the element. Raises OutsideElement with the reason if there is none."""
    place = place_below(element.url, path)
    found: str | None = f"/{path}"
    if element.rules is not None:
        seen = (place, place.removeprefix(_authority(element.url)), path)
        names = (logical_name_at(element.rules, element.protocol, each) for each in seen)
        found = next((name for name in names if name is not None), None)
    if found is None:
        raise OutsideElement(
            f"{path!r:.200} has no logical name: no rule of {element.name} gives it one", field="rules"
        )
    if flaw := name_flaw(found):
        raise OutsideElement(f"{found!r:.200} cannot be its logical name: {flaw}", field="path")
    return found


def rules_flaws(rules: NameRules, protocol: str) -> Iterator[str]:
    """Everything that is wrong with rules, one sentence each."""
    for kind, listed in (("to a place", rules.to_physical), ("to a name", rules.to_logical)):
        if len(listed) > RULES_MAX:
            yield f"there are {len(listed)} rules {kind}; at most {RULES_MAX} are taken"
            return
        known = {rule.protocol for rule in listed}
        for number, rule in enumerate(listed, 1):
            yield from (f"rule {number} {kind}: {flaw}" for flaw in rule_flaws(rule, known))
        yield from _find_cycles(listed, kind)
    if protocol not in {rule.protocol for rule in rules.to_physical}:
        yield f"no rule to a place is of the protocol {protocol!r:.80}, which the element goes by"


def rule_flaws(rule: NameRule, protocols: set[str]) -> Iterator[str]:
    """Everything that is wrong with a rule among rules of these protocols."""
    groups = 0
    for what, pattern in (("destination", rule.destination), ("match", rule.match)):
        try:
            groups = _compile(pattern).groups
        except re2.error as error:
            yield f"its {what} {pattern!r:.100} is no pattern: {_reason(error)}"
            return
        if len(pattern) > PATTERN_CHARS_MAX:
            yield f"its {what} has {len(pattern)} characters; at most {PATTERN_CHARS_MAX} are taken"
    for named in _GROUP.findall(rule.result):
        if int(named) > groups:
            yield f"its result has ${named}, and its match has {groups} groups"
    if len(rule.result) > PATTERN_CHARS_MAX:
        yield f"its result has {len(rule.result)} characters; at most {PATTERN_CHARS_MAX} are taken"
    if rule.chain and rule.chain not in protocols:
        yield f"it is chained to {rule.chain!r:.80}, and there is no such rule"


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return f"{text} (patterns are RE2's, which have neither back references nor lookahead)"


def _find_cycles(rules: tuple[NameRule, ...], kind: str) -> Iterator[str]:
    """Find chains that lead back to themselves and would never end."""
    after: dict[str, set[str]] = {}
    for rule in rules:
        after.setdefault(rule.protocol, set()).update({rule.chain} if rule.chain else ())
    for protocol, chained in after.items():
        seen, ahead = set[str](), set(chained)
        while ahead:
            seen |= (here := ahead)
            ahead = {each for one in here for each in after.get(one, ())} - seen
        if protocol in seen:
            yield f"the rules {kind} of {protocol!r:.80} are chained in a cycle"
