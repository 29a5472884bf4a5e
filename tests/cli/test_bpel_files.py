"""`mendflow flows adapt` and `mendflow flows convert`, as they are called."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.formats.bpel.adapter.bank import ASK, written


def test_adapt_says_what_it_did_and_writes_a_process(shell: Shell) -> None:  # FM-9
    written(shell.folder)
    said = shell.ok("flows", "adapt", "loan.bpel", "-o", "out/adapted.bpel")
    assert "intercepted: ask" in said
    assert "1 flow, no problems" in shell.ok("check", "out/adapted.bpel")
    told = shell.json("flows", "adapt", "loan.bpel", "-o", "again.bpel", "--only", "ask")
    assert told["intercepted"] == ["ask"] and told["left"] == []
    assert [Path(each).name for each in told["files"]] == ["again.bpel", "mendflow-proxy.wsdl"]


def test_adapt_never_writes_over_the_process_itself(shell: Shell) -> None:
    path = written(shell.folder)
    before = path.read_bytes()
    for words in (["-o", "loan.bpel"], ["-o", "loan.xml"], ["-o", "x.bpel", "--proxy", "nowhere"]):
        assert shell("flows", "adapt", "loan.bpel", *words).returncode == 2
    assert path.read_bytes() == before and not (shell.folder / "x.bpel").exists()


@pytest.mark.full
def test_convert_writes_a_process_that_runs_the_jobs_of_a_flow(shell: Shell) -> None:  # FM-2
    place = shell.folder / "said"
    jobs = f"  a: {{run: 'echo ${{{{ inputs.n }}}} >> {place}'}}\n  b: {{needs: a, run: echo b >> {place}}}\n"
    shell.write("f.yaml", f"name: f\ninputs: {{n: {{type: string}}}}\njobs:\n{jobs}")
    shell.ok("flows", "convert", "f.yaml", "-o", "out/f.bpel")
    assert "completed" in shell.ok("run", "out/f.bpel", "--part", "n=it is")
    assert place.read_text() == "it is\nb\n"


def test_convert_keeps_the_proxy_of_an_adapted_process_with_its_correlations(shell: Shell) -> None:  # FM-9
    inside = '<correlations><correlation set="set" initiate="no" pattern="request-response"/></correlations></invoke>'
    written(shell.folder, ASK.replace("/>", f">{inside}"))
    proxy = "http://127.0.0.1:9/soap/proxy"
    shell.ok("flows", "adapt", "loan.bpel", "-o", "adapted.bpel", "--proxy", proxy)
    told = shell.json("flows", "convert", "adapted.bpel", "-o", "out/adapted.bpel")
    assert any(proxy in Path(shell.folder, each).read_text() for each in told["files"])
    assert "1 flow, no problems" in shell.ok("check", "out/adapted.bpel")


def test_convert_writes_a_job_in_jsdl_and_nothing_else(shell: Shell) -> None:
    shell.write("f.yaml", "name: f\nsteps: [echo hello]\n")
    shell.ok("flows", "convert", "f.yaml", "-o", "f.jsdl")
    assert "1 flow, no problems" in shell.ok("check", "f.jsdl")
    assert shell("flows", "convert", "f.yaml", "-o", "g.yaml").returncode == 2


@pytest.mark.full
def test_deploy_without_a_server_says_to_start_one_and_under_which_path_the_flow_will_be(shell: Shell) -> None:
    written(shell.folder)
    shell.write("one.yaml", "name: one\nsteps: [echo hello]\n")
    shell.ok("run", "one.yaml", "--quiet")
    deployed = shell.ok("flows", "deploy", "loan.bpel", "one.yaml")
    assert "http://" not in deployed
    assert "start `mendflow serve`, and it takes messages for this flow at /soap/flows/loan\n" in deployed
    assert deployed.count("mendflow serve") == 1  # a flow in YAML takes no messages in SOAP
    elsewhere = shell.ok("flows", "deploy", "loan.bpel", "--data-dir", ".mendflow")
    assert "start `mendflow serve --data-dir .mendflow`" in elsewhere


def test_check_lists_what_xpath_2_may_mean_otherwise_and_run_says_that_there_is_something(shell: Shell) -> None:  # FM-2
    copy = '<copy><from>$asked.loan/bank:sum * 2</from><to variable="left"/></copy>'
    path = written(shell.folder, f"<assign>{copy}</assign>")
    language = 'expressionLanguage="urn:oasis:names:tc:wsbpel:2.0:sublang:xpath2.0"'
    path.write_text(path.read_text().replace("<process ", f"<process {language} ", 1))
    assert "--xpath2-as-1" in shell("check", "loan.bpel").stderr
    said = shell.ok("check", "loan.bpel", "--xpath2-as-1")
    assert "1 flow, no problems" in said and "note: loan.bpel:" in said and "XPath 1.0 calculates NaN" in said
    assert "1 expression may mean" in shell("flows", "graph", "loan.bpel", "--xpath2-as-1").stderr
