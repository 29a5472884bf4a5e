"""What deploy/ starts exists: commands, their options, paths of the API, files that are named."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from mendflow.cli.main import load
from mendflow.operations.table import OPERATIONS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def options_of(command: str) -> set[str]:
    found = load(command)
    return {name for each in found.params for name in (*each.opts, *each.secondary_opts)}


def assert_understood(words: list[str]) -> None:
    """The first word is the command; each option among the others is one of it."""
    unknown = {word for word in words[1:] if word.startswith("--")} - options_of(words[0])
    assert not unknown, f"mendflow {words[0]} has no option {unknown}"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("path", UNITS, ids=[path.name for path in UNITS])
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:  # SE-7
    [start] = re.findall(r"^ExecStart=(.*)$", path.read_text(), re.MULTILINE)
    program, *words = shlex.split(start)
    assert program == "/opt/mendflow/bin/mendflow"
    assert_understood(words)
    [settings] = re.findall(r"^EnvironmentFile=/etc/mendflow/(.*)$", path.read_text(), re.MULTILINE)
    given = set(re.findall(r"^(\w+)=", (path.parent / settings).read_text(), re.MULTILINE))
    used = set(re.findall(r"\$\{(MENDFLOW_\w+)\}", start))
    assert used <= given, "every variable has a value"


def test_the_unit_of_a_pilot_keeps_its_token_from_jobs() -> None:  # SE-2
    unit = (DEPLOY / "systemd" / "mendflow-pilot.service").read_text()
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    words = shlex.split(start)
    account = words[words.index("--jobs-as") + 1]
    assert f"useradd --system --create-home\n# {account})" in unit
    assert not re.search(r"^(User|DynamicUser)=", unit, re.MULTILINE), "only root gives jobs another account"
    assert re.search(r"^StateDirectoryMode=0711$", unit, re.MULTILINE), "jobs pass through to their folders"


def test_whoever_starts_pilots_in_containers_reads_what_jobs_reach_there() -> None:  # SE-2
    for name in ("kubernetes/mendflow.yaml", "compose/compose.yaml"):
        text = " ".join((DEPLOY / name).read_text().replace("#", " ").split())
        for said in ("under the account of the pilot", "a token that names one project", "--sandbox bubblewrap"):
            assert said in text, f"{name} does not say {said!r}"


def test_containers_start_commands_that_exist() -> None:  # SE-7
    [compose] = documents(DEPLOY / "compose" / "compose.yaml")
    services = compose["services"]
    assert_understood(services["pilot"]["command"])
    assert_understood(services["server"]["command"][0].partition("exec mendflow ")[2].split())
    named = [*services["server"]["secrets"], *services["pilot"]["secrets"], *services["postgres"]["secrets"]]
    secrets = {each if isinstance(each, str) else each["source"] for each in named}
    assert secrets <= compose["secrets"].keys()
    configs = {each["source"] for service in services.values() for each in service.get("configs", ())}
    assert configs == compose["configs"].keys()
    files = [each["file"] for each in compose["configs"].values() if "file" in each]
    assert files and all((DEPLOY / "compose" / file).exists() for file in files)
    for text in (each["content"] for each in compose["configs"].values() if "content" in each):
        assert isinstance(yaml.safe_load(text), dict)


def test_pods_start_commands_that_exist_and_are_asked_for_their_health() -> None:  # SE-7
    found = documents(DEPLOY / "kubernetes" / "mendflow.yaml")
    pods = [each["spec"]["template"]["spec"] for each in found if each["kind"] == "Deployment"]
    for pod in pods:
        [container] = pod["containers"]
        assert_understood(container["args"])
        assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    [server] = (pod["containers"][0] for pod in pods if pod["containers"][0]["name"] == "server")
    for probe in ("readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"]["path"] == f"/api/v1{OPERATIONS['health'].path}"


def test_the_dashboard_and_the_alerts_can_be_read() -> None:
    assert json.loads((DEPLOY / "grafana" / "mendflow.json").read_text())["panels"]
    assert documents(DEPLOY / "prometheus" / "mendflow-alerts.yml")[0]["groups"]
