"""Whatever names, paths and rules there are: a place is below its element, or there is none."""

import posixpath
from urllib.parse import unquote, urlsplit

from hypothesis import assume, example, given
from hypothesis import strategies as st

from mendflow.core.data.name_mapping import name_at, place_of, replica_place
from mendflow.core.data.paths import OutsideElement, name_flaw
from mendflow.core.model.data import NameRule, NameRules, Replica, StorageElement

PIECES = ["..", ".", "/", "//", "a", "store", "%2e", "%2E%2e", "%2f", "%252e", "%00", "\0", "\\", "::", "://", "file:"]
PIECES += ["?", "#", "*", " ", "é", "\ud800", "$1", "$2", "$9", "data", "database", "etc", "s3://", "file:///data", "~"]
wild = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=8).map("".join)
parts = st.text("abcXYZ019_.+=,@~()-", min_size=1, max_size=8).filter(lambda part: part not in (".", ".."))
names = st.lists(parts, min_size=1, max_size=5).map(lambda each: "/" + "/".join(each))
urls = st.sampled_from(["file:///data", "file:///data/", "s3://bucket", "s3://bucket/a/b", "root://host//eos/cms"])
matches = st.sampled_from(["(.*)", "/(.*)", "/+store/(.*)", "/([^/]*)/(.*)", "(.*)(.)", "(x)?(.*)"])


def element(url: str, rules: NameRules | None = None) -> StorageElement:
    return StorageElement(name="e", url=url, rules=rules, protocol="p")


def check_below(url: str, place: str) -> None:
    """As whoever opens the place would see it: with everything decoded, and every way up taken."""
    root, found = urlsplit(url), urlsplit(place)
    assert (found.scheme, found.netloc, found.query, found.fragment) == (root.scheme, root.netloc, "", "")
    seen = unquote(unquote(found.path))
    assert seen == found.path and "\\" not in seen and "\0" not in seen
    real, home = posixpath.normpath("/" + seen.lstrip("/")), posixpath.normpath("/" + root.path.lstrip("/"))
    assert real != home and real.startswith(home.rstrip("/") + "/")


@given(urls, wild)
@example("file:///data", "/../etc/passwd")
@example("file:///data", "/a/%2e%2e/%2e%2e/etc")
def test_no_name_leaves_its_element(url: str, name: str) -> None:  # PJ-7
    try:
        place = place_of(element(url), name)
    except OutsideElement:
        return
    check_below(url, place)


@given(urls, wild)
def test_no_path_of_a_replica_leaves_its_element(url: str, path: str) -> None:  # PJ-7
    assume(path)
    try:
        place = replica_place(element(url), "/a", Replica(element="e", path=path))
    except OutsideElement:
        return
    check_below(url, place)


@example("file:///data", "/0", "(.*)", "", "\ud800")
@given(urls, st.one_of(names, wild), matches, wild, st.one_of(st.just(""), wild))
def test_no_rule_leaves_its_element(url: str, name: str, match: str, result: str, chained: str) -> None:  # PJ-7
    first = NameRule(protocol="p", match=match, result=result, chain="q" if chained else "")
    rules = NameRules(to_physical=(first, NameRule(protocol="q", match="(.*)", result=chained)))
    try:
        place = place_of(element(url, rules), name)
    except OutsideElement:
        return
    check_below(url, place)


@given(urls, names)
def test_a_good_name_has_a_place_and_the_place_its_name(url: str, name: str) -> None:  # PJ-7
    assert name_flaw(name) == ""
    place = place_of(element(url), name)
    check_below(url, place)
    assert name_at(element(url), name[1:]) == name


@given(names, names)
def test_two_names_never_share_a_place(one: str, other: str) -> None:
    assume(one != other)
    assert place_of(element("s3://bucket/a"), one) != place_of(element("s3://bucket/a"), other)


@given(names)
def test_rules_and_their_inverse_go_there_and_back(name: str) -> None:  # PJ-7
    rules = NameRules(
        to_physical=(
            NameRule(protocol="d", match="/+(.*)", result="/eos/cms/$1"),
            NameRule(protocol="p", chain="d", match="(.*)", result="root://host/$1"),
        ),
        to_logical=(
            NameRule(protocol="p", chain="d", match="root://host/(.*)", result="$1"),
            NameRule(protocol="d", match="/+eos/cms/(.*)", result="/$1"),
        ),
    )
    host = element("root://host//eos/cms", rules)
    place = place_of(host, name)
    assert place == f"root://host//eos/cms{name}"
    assert name_at(host, name[1:]) == name
