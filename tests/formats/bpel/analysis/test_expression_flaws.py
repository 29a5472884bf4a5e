"""Expressions that cannot work are named by a check, and a process in XPath 2.0 can be read as XPath 1.0."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.formats import load
from mendflow.formats.bpel import xpath2_differences
from mendflow.formats.bpel.adapter import adapt
from mendflow.formats.bpel.vocabulary import XPATH_1_0, XPATH_2_0
from mendflow.formats.check import check
from tests.formats.bpel.adapter.bank import ASK, written
from tests.formats.bpel.analysis.broken import expression
from tests.formats.bpel.documents import put, sequence

IF = "<if><condition>{}</condition><empty/></if>"


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (expression("upper-case('a')"), "there is no function upper-case"),
        (expression("concat('a', 'b)"), "can never be evaluated"),
        (expression("count($paper/o:number[1)"), "can never be evaluated"),
        (expression("(1 + 2"), "can never be evaluated"),
        (expression("no:such($paper)"), "the prefix `no` has no meaning here"),
        (expression("round(1, 2)"), "round() takes"),
        (IF.format(""), "<condition> is empty"),
        (IF.format("1 +"), "'1 +' can never be evaluated"),
    ],
)
def test_an_expression_that_cannot_work_is_told_by_check_with_its_line(
    step: str, says: str, tmp_path: Path
) -> None:  # FM-2
    path = put(tmp_path, sequence("\n", step))
    (problem,) = check([path])
    assert says in problem.message
    assert problem.file == str(path)
    assert step.partition(">")[0] in path.read_text().splitlines()[problem.line - 1]
    load(path)  # it can be deployed: the fault can be caught


def test_a_language_without_an_expression_breaks_sa00032(tmp_path: Path) -> None:  # FM-2
    copy = f'<assign><copy><from expressionLanguage="{XPATH_1_0}"/><to variable="paper"/></copy></assign>'
    with pytest.raises(BadFlow, match="SA00032: <from> names a language and has no expression"):
        load(put(tmp_path, sequence(copy)))


def test_a_query_of_an_alias_that_cannot_work_is_told_in_its_own_file(tmp_path: Path) -> None:  # FM-2
    path = written(tmp_path, query="bank:number[")
    (problem,) = check([path])
    assert problem.file.endswith("bank.wsdl") and "'bank:number[' can never be evaluated" in problem.message


def in_xpath_2(folder: Path, *steps: str) -> Path:
    return put(folder, sequence(*steps).replace("<process ", f'<process expressionLanguage="{XPATH_2_0}" ', 1))


def test_xpath_2_is_refused_with_the_way_out_and_read_as_xpath_1_if_wanted(tmp_path: Path) -> None:  # FM-2
    path = in_xpath_2(tmp_path, expression("count($paper/o:number)"))
    assert any("--xpath2-as-1" in each.message for each in check([path]))
    assert check([path], xpath2_as_1=True) == []
    assert load(path, xpath2_as_1=True).xml is not None


def test_what_xpath_1_does_not_have_is_told_though_it_is_read_as_that(tmp_path: Path) -> None:  # FM-2
    path = in_xpath_2(tmp_path, expression("if (1 eq 2) then 1 else 2"), expression("upper-case('a')"))
    assert [each.message.split(" can never")[0] for each in check([path], xpath2_as_1=True)] == [
        "'if (1 eq 2) then 1 else 2'",
        "\"upper-case('a')\"",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$paper/o:number &lt; $paper/o:number", "compares as numbers"),
        ("$paper/o:number * 2", "calculates NaN"),
        ("concat($paper/o:number, '.')", "of several nodes concat() takes the first"),
        ("count($paper/o:number) &gt; 2", ""),
        ("$paper/o:number = 2", ""),
    ],
)
def test_expressions_that_may_mean_something_else_are_noted_with_the_reason(
    text: str, reason: str, tmp_path: Path
) -> None:  # FM-2
    noted = xpath2_differences(in_xpath_2(tmp_path, expression(text)))
    assert [reason in each.message for each in noted] == ([True] if reason else [])


def test_an_adapted_process_in_xpath_2_says_that_its_interceptors_are_in_xpath_1(tmp_path: Path) -> None:  # FM-9
    path = written(tmp_path, ASK, more=f'expressionLanguage="{XPATH_2_0}"')
    text = adapt(path, tmp_path / "adapted.bpel", xpath2_as_1=True).files[tmp_path / "adapted.bpel"].decode()
    assert '<process name="loan"' in text and f'expressionLanguage="{XPATH_2_0}"' in text
    assert text.count(f'expressionLanguage="{XPATH_1_0}"') > 5
