"""What rules know of a job as it was asked for."""

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec, Resources
from mendflow.core.model.values import check_value
from mendflow.services.cases.exception_facts import job_facts_of


def test_rules_know_where_a_job_wants_to_go_under_names_of_their_own() -> None:  # EX-2
    needs = Resources(site="t0", hosts=("n1", "n2"), system="linux", machine="x86", avoid_hosts=("n3",))
    facts = job_facts_of(JobSpec(item=ItemId("a"), command="x", resources=needs))
    assert not check_value(facts)
    assert (facts["site_asked"], facts["hosts_asked"], facts["avoid_hosts"]) == ("t0", ["n1", "n2"], ["n3"])
    assert (facts["system_asked"], facts["machine_asked"]) == ("linux", "x86")
    assert not {"site", "hosts", "system", "machine"} & facts.keys(), "those are where it was"
