"""Rules from logical names to places and back, in our form and with CMS's meaning."""

import pytest

from mendflow.core.data.name_mapping import (
    logical_name_at,
    name_at,
    physical_place,
    place_of,
    replica_place,
    rules_flaws,
)
from mendflow.core.data.paths import OutsideElement
from mendflow.core.model.data import NameRule, NameRules, Replica, StorageElement

CASTOR = NameRules(
    to_physical=(
        NameRule(protocol="direct", match="/+(.*)", result="/castor/cms/$1"),
        NameRule(protocol="srm", chain="direct", match="(.*)", result="srm://srm.example/managerv1?SFN=$1"),
    ),
    to_logical=(
        NameRule(protocol="direct", match=r"/+castor/cms/(.*)", result="/$1"),
        NameRule(protocol="srm", chain="direct", match=r".*\?SFN=(.*)", result="$1"),
    ),
)


def element(url: str = "file:///data", rules: NameRules | None = None, protocol: str = "p") -> StorageElement:
    return StorageElement(name="here", url=url, rules=rules, protocol=protocol)


def one(match: str, result: str, destination: str = ".*") -> NameRules:
    return NameRules(to_physical=(NameRule(protocol="p", match=match, result=result, destination=destination),))


def test_a_name_without_rules_lies_below_the_url() -> None:  # PJ-7
    assert place_of(element(), "/store/raw/a.dat") == "file:///data/store/raw/a.dat"
    assert place_of(element("s3://bucket/"), "/store/a") == "s3://bucket/store/a"
    assert place_of(element("file:///"), "/store/a") == "file:///store/a"
    assert name_at(element(), "store/raw/a.dat") == "/store/raw/a.dat"


def test_a_chained_rule_works_on_what_the_other_protocol_made() -> None:  # PJ-7
    assert physical_place(CASTOR, "direct", "/store/a") == "/castor/cms/store/a"
    assert physical_place(CASTOR, "srm", "/store/a") == "srm://srm.example/managerv1?SFN=/castor/cms/store/a"


def test_on_the_way_back_the_chain_comes_after_the_rule() -> None:  # PJ-7
    assert logical_name_at(CASTOR, "srm", "srm://srm.example/managerv1?SFN=/castor/cms/store/a") == "/store/a"


def test_an_element_with_chained_rules_gives_places_below_its_url_and_their_names_back() -> None:  # PJ-7
    srm = element("srm://srm.example/managerv1?SFN=/castor/cms", CASTOR, "srm")
    assert place_of(srm, "/store/a") == "srm://srm.example/managerv1?SFN=/castor/cms/store/a"
    assert name_at(srm, "store/a") == "/store/a"


def test_the_first_rule_that_matches_whole_counts() -> None:  # PJ-7
    rules = NameRules(
        to_physical=(
            NameRule(protocol="p", match="/store", result="never"),
            NameRule(protocol="p", match="/store/(raw|mc)/(.*)", result="$1-files/$2"),
            NameRule(protocol="p", match="/store/(.*)", result="rest/$1"),
        )
    )
    assert place_of(element(rules=rules), "/store/raw/7/a") == "file:///data/raw-files/7/a"
    assert place_of(element(rules=rules), "/store/user/a") == "file:///data/rest/user/a"


def test_a_rule_for_other_sites_is_passed_over() -> None:  # PJ-7
    rules = one("/(.*)", "fast/$1", destination="T1_.*")
    assert place_of(element(rules=rules), "/a", "T1_DE") == "file:///data/fast/a"
    with pytest.raises(OutsideElement, match="no rule for /a"):
        place_of(element(rules=rules), "/a", "T2_DE")


@pytest.mark.parametrize("result", ["deep/$1", "/data/deep/$1", "file:///data/deep/$1", "file:///data//deep//$1"])
def test_a_rule_gives_a_url_an_absolute_path_or_one_below_the_element(result: str) -> None:
    assert place_of(element(rules=one("/+store/(.*)", result)), "/store/a") == "file:///data/deep/a"


@pytest.mark.parametrize(
    "result",
    [
        "/etc/$1",
        "/data",
        "/database/$1",
        "file:///etc/$1",
        "s3://other/$1",
        "../$1",
        "deep/../../$1",
        "/data/../etc/$1",
        "%2e%2e/$1",
        "file:///data/%2E%2e/$1",
        "deep\\..\\$1",
        "a\0b/$1",
        "",
        "file:///data/x::file:///etc/$1",
        "./$1",
    ],
)
def test_no_rule_leads_out_of_its_element(result: str) -> None:  # PJ-7
    with pytest.raises(OutsideElement):
        place_of(element(rules=one("/store/(.*)", result)), "/store/a")


@pytest.mark.parametrize(
    "path", ["../a", "a/../b", "/etc/passwd", "", "a//b", "a/", "a%2fb", "a%00", "a\0", "a\\b", "x::y", "file:///etc"]
)
def test_no_replica_leads_out_of_its_element(path: str) -> None:  # PJ-7
    with pytest.raises(OutsideElement):
        if path:
            replica_place(element(), "/store/a", Replica(element="here", path=path))
        else:
            name_at(element(), path)


def test_a_replica_may_lie_elsewhere_on_its_element() -> None:
    assert replica_place(element(), "/store/a", Replica(element="here", path="in/ä.dat")) == "file:///data/in/ä.dat"


def test_a_path_that_no_name_can_be_made_of_has_none() -> None:
    with pytest.raises(OutsideElement, match=r"'ä.dat' cannot be a part"):
        name_at(element(), "in/ä.dat")
    with pytest.raises(OutsideElement, match="no rule of here"):
        name_at(element(rules=CASTOR, protocol="direct"), "elsewhere")
    with pytest.raises(OutsideElement, match="it has `#` in it"):
        name_at(element(), "in/a#.dat")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (NameRule(protocol="p", match="(", result="x"), "is no pattern"),
        (NameRule(protocol="p", match="(.*)", result="$2"), r"\$2, and its match has 1 groups"),
        (NameRule(protocol="p", match="(.*)", result="$1", chain="q"), "no such rule"),
        (NameRule(protocol="p", match="(.*)", result="$1", chain="p"), "in a cycle"),
        (NameRule(protocol="q", match="(.*)", result="$1"), "of the protocol 'p'"),
        (NameRule(protocol="p", match="x" * 2000, result="x"), "at most 1000"),
    ],
)
def test_rules_that_cannot_work_are_told(rule: NameRule, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(" ".join(rules_flaws(NameRules(to_physical=(rule,)), "p")))


def test_rules_of_cms_have_no_flaws() -> None:
    assert list(rules_flaws(CASTOR, "srm")) == []


def test_chains_in_a_circle_end_nowhere_rather_than_never() -> None:
    rules = NameRules(to_physical=(NameRule(protocol="p", match="(.*)", result="$1", chain="p"),))
    assert physical_place(rules, "p", "/a") is None


@pytest.mark.parametrize("pattern", ["(/(a+)+)+b", "(/a|/aa|/a*)*b", "((.*)*)*b", "(?:(?:a{0,10}){0,10}.*){0,8}b"])
@pytest.mark.timeout(20)
def test_no_pattern_takes_longer_than_its_name_is_long(pattern: str) -> None:  # PJ-7
    """One that goes back and tries again would need longer than there is time."""
    name = "/" + "a" * 400 + "c"
    assert physical_place(one(pattern, "x"), "p", name) is None
    assert physical_place(one(".*", "x", destination=pattern), "p", "/a", site=name) is None
    assert not list(rules_flaws(one(pattern, "x"), "p"))


@pytest.mark.timeout(20)
def test_chained_rules_are_applied_once_to_a_name() -> None:
    """Each of many rules that chain to many, five deep: never mind how many ways lead through them."""
    rules = [NameRule(protocol="0", match="/other", result="x")]
    for depth in range(1, 6):
        rules += [NameRule(protocol=str(depth), chain=str(depth - 1), match=f"/{n}", result="x") for n in range(150)]
    assert physical_place(NameRules(to_physical=tuple(rules)), "5", "/store/a") is None


@pytest.mark.timeout(20)
def test_what_rules_make_does_not_grow_without_bound() -> None:
    rules = [NameRule(protocol="0", match="(.*)", result="$1")]
    rules += [NameRule(protocol=str(n), chain=str(n - 1), match="(.*)", result="$1" * 400) for n in range(1, 10)]
    assert physical_place(NameRules(to_physical=tuple(rules)), "9", "/" + "a" * 400) is None
    assert any("result has 1001" in each for each in rules_flaws(one(".*", "x" * 1001), "p"))


@pytest.mark.parametrize("pattern", ["(", "(a)\\1", "a(?=b)", "((a{100}){100}){100}"])
def test_what_is_no_pattern_of_re2_is_refused_with_its_reason(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    (flaw,) = rules_flaws(one(pattern, "x"), "p")
    assert "is no pattern" in flaw and "RE2" in flaw
    assert capfd.readouterr().err == ""
