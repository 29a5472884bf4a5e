"""Trivial file catalogues in CMS's XML and in YAML, in and out; and storage elements in YAML."""  # PJ-7

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.data.name_mapping import place_of
from mendflow.core.model.data import NameRule, NameRules, StorageElement
from mendflow.core.model.errors import BadRules, InvalidRequest, RequestError
from mendflow.formats.tfc import (
    load_element,
    load_name_rules,
    read_cms,
    read_element,
    read_name_rules,
    write_cms,
    write_name_rules,
)

SITE = """<?xml version="1.0"?>
<storage-mapping>
  <!-- names begin with /store -->
  <lfn-to-pfn protocol="direct" destination-match="T1_.*" path-match="/+store/tape/(.*)"
              is-custodial="y" result="/tape/$1"/>
  <lfn-to-pfn protocol="direct" destination-match=".*" path-match="/+store/(.*)" result="/pnfs/cms/store/$1"/>
  <lfn-to-pfn protocol="srm" chain="direct" path-match="(.*)" space-token="CMS" result="srm://se.example:8443/m?SFN=$1"/>
  <pfn-to-lfn protocol="direct" path-match="/pnfs/cms/store/(.*)" result="/store/$1"/>
  <pfn-to-lfn protocol="srm" chain="direct" path-match=".*\\?SFN=(.*)" result="$1"/>
</storage-mapping>
"""


def test_a_catalogue_of_cms_is_read_with_its_chains() -> None:  # PJ-7
    rules = read_cms(SITE, "storage.xml")
    assert [(rule.protocol, rule.chain) for rule in rules.to_physical] == [("direct", ""), ("srm", "direct")]
    assert rules.to_logical[1].match == r".*\?SFN=(.*)"
    se = StorageElement(name="se", url="srm://se.example:8443/m?SFN=/pnfs/cms", rules=rules, protocol="srm")
    assert place_of(se, "/store/raw/a.root") == "srm://se.example:8443/m?SFN=/pnfs/cms/store/raw/a.root"


def test_what_was_read_is_written_and_read_again() -> None:  # PJ-7
    rules = read_cms(SITE, "storage.xml")
    assert read_cms(write_cms(rules), "again.xml") == rules
    assert read_name_rules(write_name_rules(rules)) == rules
    assert read_name_rules(SITE) == rules  # whichever of the two it is


texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="$\\*+?()[]{}|^"), max_size=20)
made = st.builds(NameRule, protocol=st.sampled_from(["p", "q"]), match=texts, result=texts, destination=texts)


@given(st.lists(made, max_size=4), st.lists(made, max_size=4))
def test_any_rules_survive_both_forms(there: list[NameRule], back: list[NameRule]) -> None:  # PJ-7
    rules = NameRules(to_physical=tuple(there), to_logical=tuple(back))
    assert read_name_rules(write_name_rules(rules)) == rules
    assert read_cms(write_cms(rules), "x") == rules


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ('<lfn-to-pfn protocol="p" result="x"/>', "2: <lfn-to-pfn> needs `path-match`"),
        ('<lfn-to-pfn protocol="p" path-match="(" result="x"/>', "is no pattern"),
        ('<lfn-to-pfn protocol="p" path-match="a" result="$1"/>', "its match has 0 groups"),
        ('<lfn-to-pfn protocol="p" chain="q" path-match="a" result="b"/>', "no such rule"),
        ('<lfn-to-pfn protocol="p" path-math="a" path-match="a" result="b"/>', "did you mean `?path-match"),
        ('<lfn-to-lfn protocol="p" path-match="a" result="b"/>', "<lfn-to-lfn> is not known here"),
        ("<lfn-to-pfn", "this is not XML"),
    ],
)
def test_every_problem_of_a_catalogue_is_told_with_its_place(inside: str, told: str) -> None:
    with pytest.raises(BadRules, match=told.replace("<", ".").replace("(", r"\(")):
        read_cms(f"<storage-mapping>\n{inside}\n</storage-mapping>", "storage.xml")


@pytest.mark.parametrize(
    "text",
    [
        "<rules/>",
        '<!DOCTYPE s [<!ENTITY e "x">]><storage-mapping>&e;</storage-mapping>',
        '<!DOCTYPE s SYSTEM "file:///etc/passwd"><storage-mapping/>',
        "to-physical: 5",
        "to-phsical: []",
        "to-physical: [{protocol: p, match: a, result: b, chian: q}]",
        "to-physical: [{protocol: p}]",
        "- a",
        "a: [",
    ],
)
def test_what_is_no_catalogue_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        read_name_rules(text)


def test_an_element_is_read_with_times_and_sizes_as_people_write_them(tmp_path: Path) -> None:
    (tmp_path / "storage.xml").write_text(SITE)
    (tmp_path / "se.yaml").write_text(
        "name: se\nurl: root://se.example:1094//pnfs/cms\nsites: [T1_DE, T2_DE]\nprotocol: srm\n"
        "timeout: 30 s\nchunk: 1 MiB\ntries: 2\nread-only: true\nrules: storage.xml\n"
        "options: {key: env:SE_KEY, anon: false}\n"
    )
    element = load_element(tmp_path / "se.yaml")
    assert (element.timeout_ms, element.chunk_bytes, element.tries, element.read_only) == (30_000, 1 << 20, 2, True)
    assert element.rules == load_name_rules(tmp_path / "storage.xml")
    assert element.sites == ("T1_DE", "T2_DE")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: a", "url"),
        ("name: a\nurl: file:///a\nsite: x", "'site' is not known here"),
        ("name: a\nurl: file:///a\ntimeout: soon", "timeout 'soon'"),
        ("name: a\nurl: s3://b\noptions: {secret: hunter2}", "env:NAME"),
        ("name: a\nurl: file:///a\nrules: other.xml", "another file"),
        ("name: a\nurl: file:///a\nrules: {to-physical: [{protocol: p, match: '(', result: x}]}", "no pattern"),
        ("name: a\nurl: file:///a/../b", r"`\.\.`"),
    ],
)
def test_what_is_no_element_is_refused_with_its_reason(text: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        read_element(text)
