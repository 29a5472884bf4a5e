"""What is kept of where a case came from has bounds, and is used for the one who told it."""  # SE-4

import pytest
from msgspec.structs import replace

from mendflow.core.data.case_origins import (
    INPUTS_MAX,
    ORIGIN_CHARS_MAX,
    PATH_CHARS_MAX,
    bounded_origin,
    is_told_by,
    origin_flaw,
)
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import Principal
from mendflow.core.model.views import CaseOrigin
from mendflow.services.cases.live_case import CaseDocument

LONG = "/" + "x" * PATH_CHARS_MAX
USUAL = CaseOrigin(
    flow="/home/ann/flow.yaml",
    inputs={"a": "/data/a.txt", "rows": "@/data/rows.csv", "many": '["/data/*.csv", "/more/*.csv"]'},
    inputs_file="/home/ann/inputs.yaml",
    output_dir="/home/ann/results",
    report="/home/ann/end.html",
    told_by="ann",
)


def test_a_usual_origin_is_as_it_was() -> None:
    many = replace(USUAL, inputs={"many": "[" + ", ".join(f'"/data/{n}.csv"' for n in range(1_000)) + "]"})
    for origin in (USUAL, many, replace(USUAL, flow=LONG[:PATH_CHARS_MAX])):
        assert origin_flaw(origin) == ""
        assert bounded_origin(origin) is origin


@pytest.mark.parametrize(
    ("origin", "flaw"),
    [
        (CaseOrigin(flow=LONG), "origin.flow: it has 4,097 characters, and a path has at most 4,096"),
        (CaseOrigin(report=LONG), "origin.report: it has 4,097 characters"),
        (CaseOrigin(output_dir="/a\nb"), "origin.output_dir: it has a control character, and a path has none"),
        (CaseOrigin(inputs_file="/a\x1b[2Jb"), "origin.inputs_file: it has a control character"),
        (CaseOrigin(inputs={"a": "/a\0"}), "origin.inputs.'a': it has a control character"),
        (CaseOrigin(inputs={"a": f'["/b", "{LONG}"]'}), "origin.inputs.'a': it has 4,097 characters"),
        (CaseOrigin(inputs={"a": '["/b\\n"]'}), "origin.inputs.'a': it has a control character"),
        (CaseOrigin(inputs={LONG: "/a"}), "it has 4,097 characters"),
        (CaseOrigin(inputs={f"i{n}": "/a" for n in range(INPUTS_MAX + 1)}), "it names 257 inputs, and may name at"),
        (CaseOrigin(inputs={f"i{n}": LONG[:4_000] for n in range(20)}), "origin: it has 80,050 characters, and may"),
        (CaseOrigin(inputs={"a": "[" + "x" * ORIGIN_CHARS_MAX}), "origin.inputs.'a': it has 65,537 characters"),
    ],
)
def test_what_is_too_much_is_named_and_cut(origin: CaseOrigin, flaw: str) -> None:
    assert flaw in origin_flaw(origin)
    cut = bounded_origin(replace(origin, told_by="ann", inputs={"kept": "/kept", **origin.inputs}))
    assert (origin_flaw(cut), cut.told_by, cut.inputs["kept"]) == ("", "ann", "/kept")


def test_a_case_that_was_stored_with_more_is_shown_without_it() -> None:
    document = CaseDocument(id=CaseId("f-1"), flow="f", digest="d", origin=CaseOrigin(flow="x" * 15_000_000))
    assert document.view().origin == CaseOrigin()


def test_nobody_but_the_teller_is_the_teller() -> None:
    assert is_told_by(USUAL, "ann")
    assert not is_told_by(USUAL, "eve") and not is_told_by(None, "ann")
    assert not is_told_by(replace(USUAL, told_by=""), ""), "of before, or of an archive: nobody knows"


def test_an_account_is_not_the_token_of_its_name() -> None:
    token, account = Principal("ann", frozenset()), Principal("ann", frozenset(), account="ann")
    assert (token.teller, account.teller) == ("ann", "account ann")
    assert Principal("as she likes", frozenset(), account="ann").teller == account.teller
