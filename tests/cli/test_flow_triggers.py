"""The key `on` by command: what takes effect and when, who may, and what is told."""

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

FLOW = """
inputs: {file: {type: file}}
on: {files: {in: incoming, match: "*.csv"}, failure: {notify: http://127.0.0.1:9/x}}
jobs: {a: {inputs: {in.csv: "${{ inputs.file }}"}, run: wc -l < in.csv}}
"""
STORE = FLOW.replace("in: incoming", "in: drop:x")


@pytest.mark.full
def test_run_and_start_do_it_once_and_say_what_deploy_does(shell: Shell) -> None:
    shell.write("count.yaml", FLOW)
    done = shell("run", "count.yaml", "--input", "file=count.yaml")
    told = (
        "this runs count once, whatever its `on:` says; `mendflow flows deploy count.yaml` deploys it with its `on:`,"
        " and `mendflow serve` then does what it says"
    )
    assert done.returncode == 0 and told in done.stderr, done.stderr
    assert told in shell("run", "count.yaml").stderr, "also where its file is not given"
    assert "whatever its `on:`" not in shell("run", "count.yaml", "--input", "file=count.yaml", "--quiet").stderr
    assert told in shell("start", "count.yaml", "--input", "file=count.yaml").stderr
    assert shell.json("data", "watch") == []
    assert "nobody has deployed it, cases were started from its file" in shell.ok("flows", "show", "count")


@pytest.mark.full
def test_a_run_says_however_quiet_that_the_addresses_of_the_flow_are_not_told(shell: Shell) -> None:
    shell.write("one.yaml", "on: {failure: {notify: http://127.0.0.1:9/x}}\njobs: {a: {run: 'true'}}")
    told = "http://127.0.0.1:9/x is told of the end only where one is deployed, by its `on:`; --notify ADDRESS tells"
    assert told in shell("run", "one.yaml", "--quiet").stderr
    assert (
        "is told of" not in shell("run", "one.yaml", "--quiet", "--dry-run", "--notify", "http://127.0.0.1:9/x").stderr
    )


def test_check_remarks_on_a_mail_address_where_no_mail_server_is_known(shell: Shell) -> None:
    shell.write("one.yaml", "on: {failure: {notify: ann@example.org}}\njobs: {a: {run: 'true'}}")
    assert "remark: one: no mail server is known here for ann@example.org; the server" in shell.ok("check", "one.yaml")
    shell.environment["MENDFLOW_SMTP"] = "smtp://localhost"
    assert "no mail server" not in shell.ok("check", "one.yaml")


def test_deploy_has_it_take_effect_and_the_lists_show_it(shell: Shell) -> None:
    shell.write("count.yaml", FLOW)
    missing = shell("flows", "deploy", "count.yaml")
    assert (
        missing.returncode != 0 and "incoming is not there; a folder is one of the server's machine" in missing.stderr
    )
    (shell.folder / "incoming").mkdir()
    told = shell.ok("flows", "deploy", "count.yaml")
    assert f"each file *.csv in {shell.folder}/incoming, unchanged for 10.0 s, starts a case as input file" in told
    assert "a case that ends as failed is told to http://127.0.0.1:9/x" in told
    assert "no server runs here; this happens while `mendflow serve` runs" in told
    assert "*.csv in" in shell.ok("flows")
    shown = shell.ok("flows", "show", "count")
    assert "input file: file, required" in shown and "0 files taken" in shown and "another `on:`" not in shown
    [watch] = shell.json("data", "watch")
    assert watch["flow"] == "count"
    assert shell.ok("flows", "remove", "count") == "count is removed; its cases stay\n"
    assert shell.json("data", "watch") == shell.json("flows") == []


def test_check_asks_for_the_store_where_there_is_somebody_to_ask(shell: Shell) -> None:
    shell.write("count.yaml", STORE)
    assert "count.yaml: no server could be asked whether there is a storage element drop" in shell.ok(
        "check", "count.yaml"
    )
    (shell.folder / "disk").mkdir()
    shell.write("other.yaml", "jobs: {a: {run: x}}")
    shell.ok("flows", "deploy", "other.yaml")  # begins a data folder
    done = shell("check", "count.yaml")
    assert done.returncode == 2 and "count.yaml:3:18: there is no storage element `drop`" in done.stderr, done.stderr
    refused = shell("flows", "deploy", "count.yaml")
    assert "on.files.in: there is no storage element 'drop'" in refused.stderr
    assert [each["name"] for each in shell.json("flows")] == ["other"]
    shell.ok("data", "storage", "add", "--name", "drop", "--url", (shell.folder / "disk").as_uri())
    assert shell.ok("check", "count.yaml") == "1 flow, no problems\n"
    assert "in drop:x" in shell.ok("flows", "deploy", "count.yaml")


def test_of_several_files_it_is_told_which_were_deployed_before_one_was_refused(shell: Shell) -> None:
    for name in ("one", "three"):
        shell.write(f"{name}.yaml", "jobs: {a: {run: x}}")
    shell.write("two.yaml", STORE)
    refused = shell("flows", "deploy", "one.yaml", "two.yaml", "three.yaml")
    assert refused.returncode != 0 and "there is no storage element 'drop'" in refused.stderr
    assert "deployed before this: one version 1; not deployed: two, three" in refused.stderr
    assert [each["name"] for each in shell.json("flows")] == ["one"]


@pytest.mark.full
def test_who_may_not_make_watches_does_not_get_them_through_a_flow(shell: Shell) -> None:
    (shell.folder / "incoming").mkdir()
    for name, role in (("ann", "admin"), ("bob", "user")):
        token = shell.ok("admin", "tokens", "line", name, "--role", role, "--append", "tokens")
        shell.write(name, token)
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--tokens", "tokens", "--allow-address", "127.0.0.1")
    shell.write("count.yaml", FLOW)
    refused = shell("flows", "deploy", "count.yaml", "--token-file", "bob")
    assert refused.returncode != 0 and "only an administrator may make and remove watches" in refused.stderr
    assert shell.json("flows", "--token-file", "bob") == []
    shell.ok("flows", "deploy", "count.yaml", "--token-file", "ann")
    shell.write("count.yaml", FLOW.replace("wc -l", "wc -c"))
    assert "count version 2" in shell.ok("flows", "deploy", "count.yaml", "--token-file", "bob")
    shell.write("count.yaml", FLOW.replace("on:", "x-on:"))
    refused = shell("flows", "deploy", "count.yaml", "--token-file", "bob")
    assert refused.returncode != 0 and "flow count loses triggers" in refused.stderr
    assert shell("flows", "remove", "count", "--token-file", "bob").returncode != 0
    assert len(shell.json("data", "watch", "--token-file", "bob")) == 1
