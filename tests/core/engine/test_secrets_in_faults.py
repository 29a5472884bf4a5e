"""The text of a fault is told more widely than the data of a case: it has no value that is secret by its name."""

import pytest

from mendflow.core.engine.decide import check_inputs
from mendflow.core.model.errors import RequestError
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Branch, Choose, Empty, Flow, ForEach, Input, JobActivity, Stage
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value
from tests.core.engine.world import Play

SECRET = "s3cr3t-that-nobody-reads"
TOKEN = "inputs.api_token"


def choose(condition: str) -> Activity:
    branch = Branch(when=Expr(condition), body=Empty(name="e"))
    return Choose(name="c", branches=(branch,))


def failure(body: Activity) -> str:
    given: dict[str, Value] = {"api_token": SECRET, "word": "plain", "tokens": {"api_token": SECRET}}
    play = Play(Flow(name=FlowName("f"), inputs=dict.fromkeys(given, Input()), body=body), given)
    assert play.ended.fault is not None
    return play.ended.fault.message


@pytest.mark.parametrize(
    "body",
    [
        choose(TOKEN),
        choose(f'{{"a": true}}[{TOKEN}]'),
        ForEach(name="f", body=Empty(name="e"), first=0, last=Expr("inputs.tokens.api_token")),
        JobActivity(name="j", command=f"echo ${{{{ timestamp({TOKEN}) }}}}"),
        JobActivity(name="j", command=f"echo ${{{{ string(int({TOKEN})) }}}}"),
        Stage(name="s", files={"x": f"${{{{ [{TOKEN}] }}}}"}),
    ],
    ids=["condition", "key", "count", "timestamp", "number", "file"],
)
def test_se_1_a_fault_quotes_no_secret(body: Activity) -> None:
    assert SECRET[:12] not in failure(body)


def test_fm_1_a_fault_quotes_what_is_no_secret() -> None:
    assert failure(choose("inputs.word")) == "`inputs.word` gives 'plain'; a condition must give true or false"
    assert "did you mean `api_token`?" in failure(choose("inputs.api_tokn"))


def test_se_1_an_input_that_is_refused_is_not_quoted_if_it_is_secret() -> None:
    wants = Flow(
        name=FlowName("f"), inputs={"api_token": Input(type="number"), "n": Input(type="number")}, body=Empty(name="e")
    )
    with pytest.raises(RequestError) as refused:
        check_inputs(wants, {"api_token": SECRET, "n": "plain"})
    assert SECRET not in refused.value.message
    assert "not 'plain'" in refused.value.message
