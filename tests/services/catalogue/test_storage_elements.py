"""Which storage elements are taken, and as what they are kept."""

import pytest

from mendflow.core.model.data import NameRule, NameRules, StorageElement
from mendflow.core.model.problems import Invalid
from mendflow.services.local_domain import LocalDomain
from tests.services.catalogue.test_catalogue import WHO, element


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (element("a/b"), "its name"),
        (element("e", "data"), "needs a protocol"),
        (element("e", "file://data"), "whole path"),
        (element("e", "file:///data/../etc"), "`..`"),
        (element("e", "nosuch://a/b"), "nobody here speaks 'nosuch'"),
        (element("e", "srm://a/b"), "nobody here speaks 'srm'"),
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
async def test_what_cannot_be_an_element_is_refused(domain: LocalDomain, given: StorageElement, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        await domain.put_element(given, who=WHO)


async def test_an_element_may_be_given_by_a_path_and_rules_of_one_protocol(domain: LocalDomain) -> None:
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
    domain: LocalDomain, url: str, kept: str, read_only: bool
) -> None:
    found = await domain.put_element(element("e", url), who=WHO)
    assert (found.url, found.read_only) == (kept, read_only)
    assert await domain.put_element(element("e", url), who=WHO) == found, "told again, it is the same"
