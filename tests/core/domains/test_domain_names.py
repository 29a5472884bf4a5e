"""Names of domains, and which of them a flow names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.domains.domain_names import domain_name_flaw, domain_name_from
from mendflow.core.domains.domains_of_flow import domains_named
from mendflow.core.model.flow import Call, Flow, JobActivity, Parallel
from mendflow.core.model.ids import FlowName


@pytest.mark.parametrize("name", ["fiu", "IBM", "a.b-c_d", "x" * 64, "7"])
def test_a_plain_name_is_one(name: str) -> None:
    assert not domain_name_flaw(name)


@pytest.mark.parametrize("name", ["", "any", "Any", ".", "-a", "a-", "a/b", "a b", "x" * 65, "ä", "a\n"])
def test_whatever_could_be_mistaken_is_none(name: str) -> None:
    assert domain_name_flaw(name)


@given(st.text())
def test_every_host_gives_a_name(host: str) -> None:
    assert not domain_name_flaw(domain_name_from(host))


def test_a_flow_names_the_domains_of_its_jobs_and_of_the_flows_that_it_takes_along() -> None:
    inner = Flow(name=FlowName("inner"), body=JobActivity(name="deep", command="true", domain="west"))
    body = Parallel(
        name="all",
        branches=(
            JobActivity(name="here", command="true"),
            JobActivity(name="free", command="true", domain="any"),
            JobActivity(name="there", command="true", domain="south"),
            Call(name="sub", flow="inner"),
            Call(name="far", flow="other", domain="east"),
        ),
    )
    assert domains_named(Flow(name=FlowName("f"), body=body, calls=(inner,))) == {
        "south": "there",
        "east": "far",
        "west": "deep",
    }


def test_what_a_flow_that_goes_elsewhere_names_is_for_the_other_domain_to_judge() -> None:
    inner = Flow(name=FlowName("inner"), body=JobActivity(name="deep", command="true", domain="west"))
    flow = Flow(name=FlowName("f"), body=Call(name="sub", flow="inner", domain="south"), calls=(inner,))
    assert domains_named(flow) == {"south": "sub"}
