"""Which storage elements are taken, and as what they are kept."""

import pytest

from mendflow.core.data.elements import elements_overlap
from mendflow.core.model.data import NameRule, NameRules, StorageElement
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.services.api.domain import Domain
from tests.services.catalogue.test_catalogue import WHO, element


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (element("a/b"), "its name"),
        (element("e", "data"), "needs a protocol"),
        (element("e", "file://data"), "whole path"),
        (element("e", "file:///data/../etc"), "`..`"),
        (element("e", "nosuch://a/b"), "'nosuch' is not supported"),
        (element("e", "srm://a/b"), "'srm' is not supported"),
        (element("e", "s3:///x"), "names no bucket; write s3://BUCKET/PATH"),
        (element("e", "ftp:///x"), "names no machine"),
        (element("e", "https://"), "names no machine"),
        (element("e", "sftp://me@/x"), "names no machine"),
        (element("e", "simplecache::s3://b"), "chains|protocol"),
        (element("e", "ftp://user:password@host/x"), "password"),
        (element("e", options={"secret": "hunter2"}), "env:NAME"),
        (element("e", options={"aws_secret_access_key": "x"}), "env:NAME"),
        (element("e", options={"key": "env:not a name"}), "env:NAME"),
        (element("e", tries=0), "its tries is 0"),
        (element("e", rules=NameRules(), protocol="p"), "no rule to a place"),
        (element("e", sites=("",)), "its sites"),
    ],
)
async def test_what_cannot_be_an_element_is_refused(domain: Domain, given: StorageElement, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        await domain.put_element(given, who=WHO)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (element("a", "file:///data"), element("b", "file:///data"), True),
        (element("a", "file:///data"), element("b", "file:///data/raw/"), True),
        (element("a", "file:///data/raw"), element("b", "local:///data"), True),
        (element("a", "file:///data"), element("b", "file:///database"), False),
        (element("a", "file:///data"), element("b", "file:///data", read_only=True), False),
        (element("a", "file:///data", sites=("A",)), element("b", "file:///data", sites=("B",)), False),
        (element("a", "file:///data", sites=("A",)), element("b", "file:///data"), True),
        (element("a", "file:///data", sites=("A", "B")), element("b", "file:///data", sites=("B", "C")), True),
        (element("a", "s3://data", sites=("A",)), element("b", "s3a://data/x", sites=("B",)), True),
        (element("a", "s3://data"), element("b", "s3://data", options={"endpoint_url": "https://x"}), False),
        (element("a", "s3://data"), element("b", "gs://data"), False),
        (element("a", "sftp://one/data"), element("b", "sftp://two/data"), False),
    ],
)
def test_elements_overlap_where_one_place_could_be_written_through_both(
    one: StorageElement, other: StorageElement, told: bool
) -> None:  # PJ-7
    assert elements_overlap(one, other) is elements_overlap(other, one) is told


async def test_an_element_that_overlaps_with_another_is_refused_with_what_to_do(domain: Domain) -> None:  # PJ-7
    await domain.put_element(element("top", "file:///data"), who=WHO)
    with pytest.raises(Conflict, match=r"raw at file:///data/raw overlaps with top at file:///data, .*read-only"):
        await domain.put_element(element("raw", "file:///data/raw"), who=WHO)
    await domain.put_element(element("raw", "file:///data/raw", read_only=True), who=WHO)
    await domain.put_element(element("top", "file:///data", tries=7), who=WHO, replace=True)
    with pytest.raises(Conflict, match="overlaps"):
        await domain.put_element(element("raw", "file:///data/raw"), who=WHO, replace=True)


async def test_an_element_may_be_given_by_a_path_and_rules_of_one_protocol(domain: Domain) -> None:
    rules = NameRules(to_physical=(NameRule(protocol="direct", match="/(.*)", result="$1"),))
    kept = await domain.put_element(element("e", "/data", rules=rules, options={"key": "env:K", "anon": True}), who=WHO)
    assert (kept.url, kept.protocol) == ("file:///data", "direct")


@pytest.mark.parametrize(
    ("url", "kept", "read_only"),
    [
        ("FILE:///data", "file:///data", False),
        ("hdfs:///data", "hdfs:///data", False),
        ("sftp://me@host/data", "sftp://me@host/data", False),
        ("http://host/data", "http://host/data", True),
        ("abfs://container/data", "abfs://container/data", True),
    ],
)
async def test_what_cannot_be_written_to_is_only_read_from(
    domain: Domain, url: str, kept: str, read_only: bool
) -> None:
    found = await domain.put_element(element("e", url), who=WHO)
    assert (found.url, found.read_only) == (kept, read_only)
    assert await domain.put_element(element("e", url), who=WHO) == found, "told again, it is the same"
